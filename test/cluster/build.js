// Builds the programs of the test cluster, once for each state of their sources, into the cache of this user.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mesh-cluster')
const programs = ['ip', 'iptables', 'conntrack', 'ipset']
/** The number of states of the sources of which the programs are kept. */
const kept = 3
/** Of the Go toolchain, as in go.mod. */
const oldestGo = [1, 26]

/** Why no cluster can be started here, or undefined. */
export function missingForCluster() {
  if (process.platform !== 'linux') return 'a cluster is made of network namespaces, which only Linux has'
  if (process.getuid?.() !== 0) return 'a cluster is made of network namespaces, which only root can make'
  const absent = programs.filter((program) => spawnSync(program, ['--version']).error?.code === 'ENOENT')
  if (absent.length > 0) return `not installed: ${absent.join(', ')} (Debian packages iproute2, iptables, conntrack, ipset)`
  if (existsSync(join(binaries(), 'kube'))) return undefined
  const { stdout, error } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' })
  if (error) return 'Go is not installed, which builds the programs of the cluster'
  const [major = 0, minor = 0] = stdout.trim().replace('go', '').split('.').map(Number)
  const isOld = major < oldestGo[0] || (major === oldestGo[0] && minor < oldestGo[1])
  return isOld ? `the programs of the cluster need Go ${oldestGo.join('.')} or newer, found ${stdout.trim()}` : undefined
}

/** The folder of the programs for the present sources. */
function binaries() {
  const hash = createHash('sha256')
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /[.](go|mod|sum)$/.test(name) && !name.startsWith('selftest'),
  )
  for (const name of sources.sort()) hash.update(`${name}\0`).update(readFileSync(join(root, name)))
  return join(cache, hash.digest('hex').slice(0, 16))
}

/** Builds the programs if they are not there yet, which takes about ten minutes without Go's own cache. Returns their folder. */
export function buildCluster() {
  const folder = binaries()
  if (existsSync(join(folder, 'kube'))) return folder
  console.log('building the programs of the test cluster (minutes, once for each state of test/cluster)')
  mkdirSync(cache, { recursive: true })
  // Built beside its place, so that nobody finds a part of it.
  const made = mkdtempSync(join(cache, 'build-'))
  const kubernetes = go(['list', '-m', '-f', '{{.Version}}', 'k8s.io/kubernetes']).trim()
  const [, minor] = kubernetes.split('.')
  const versions = { gitVersion: kubernetes, gitMajor: '1', gitMinor: minor }
  const flags = Object.entries(versions).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  go(['build', '-buildvcs=false', '-o', `${made}/`, '-ldflags', `-s -w ${flags.join(' ')}`, './cmd/...'])
  try {
    renameSync(made, folder)
  } catch {
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
  removeOld()
  return folder
}

/** Removes the programs of all but the last states of the sources: each takes 224 MB. */
function removeOld() {
  const folders = readdirSync(cache)
    .filter((name) => /^[0-9a-f]{16}$/.test(name))
    .map((name) => join(cache, name))
  const byAge = folders.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)
  for (const folder of byAge.slice(kept)) rmSync(folder, { recursive: true, force: true })
}

/** Runs the Go toolchain in the folder of the sources. Throws an Error with what it said when it fails. */
function go(args) {
  const { status, stdout, stderr } = spawnSync('go', args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`go ${args[0]}: ${stderr}`)
  return stdout
}
