// Builds Helm from its Go module, once for each state of test/chart/helm, into the cache of this user.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), 'helm')
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mesh-helm')

/** The program for the present sources. */
function program() {
  const hash = createHash('sha256')
  for (const name of ['go.mod', 'go.sum']) hash.update(`${name}\0`).update(readFileSync(join(root, name)))
  return join(cache, hash.digest('hex').slice(0, 16), 'helm')
}

/** Why there is no Helm here, or undefined. */
export function missingForHelm() {
  if (existsSync(program())) return undefined
  return spawnSync('go', ['env', 'GOVERSION']).error ? 'Go is not installed, which builds Helm' : undefined
}

/** Builds Helm if it is not there yet, which takes minutes without Go's own cache. Returns its path. */
export function buildHelm() {
  const path = program()
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  // Built beside its place, so that nobody finds a part of it.
  const made = mkdtempSync(join(cache, 'build-'))
  const { status, stderr } = spawnSync(
    'go',
    ['build', '-buildvcs=false', '-ldflags', '-s -w', '-o', join(made, 'helm'), 'helm.sh/helm/v4/cmd/helm'],
    {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, CGO_ENABLED: '0' },
    },
  )
  if (status !== 0) throw new Error(`go build: ${stderr}`)
  try {
    renameSync(made, dirname(path))
  } catch {
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
  return path
}
