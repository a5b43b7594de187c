// Builds the program of test/template/oracle once for each state of its sources, into the cache of this user.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), 'oracle')
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mesh-oracle')

/** The program for the present sources. */
function program() {
  const hash = createHash('sha256')
  for (const name of ['go.mod', 'go.sum', 'main.go']) hash.update(`${name}\0`).update(readFileSync(join(root, name)))
  return join(cache, hash.digest('hex').slice(0, 16), 'oracle')
}

/** Why Go cannot be asked here, or undefined. */
export function missingForOracle() {
  if (existsSync(program())) return undefined
  return spawnSync('go', ['env', 'GOVERSION']).error ? 'Go is not installed, whose text/template is compared with ours' : undefined
}

/** Builds the program if it is not there yet, which takes about a minute. Returns its path. */
export function buildOracle() {
  const path = program()
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  // Built beside its place, so that nobody finds a part of it.
  const made = mkdtempSync(join(cache, 'build-'))
  const { status, stderr } = spawnSync('go', ['build', '-buildvcs=false', '-o', join(made, 'oracle'), '.'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  if (status !== 0) throw new Error(`go build: ${stderr}`)
  try {
    renameSync(made, dirname(path))
  } catch {
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
  return path
}
