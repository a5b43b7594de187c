// Plain JavaScript for Node 14 and later: determines whether this Node can run the project, and if not, starts the Node that
// `npm install` brings (package-lock.json), with the same arguments.
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The oldest Node that strips types and lets threads share a port. */
const oldest = [22, 19]

/**
 * Resolves to true when this process can continue; otherwise runs the pinned Node in its place, or exits with an error when there is
 * none.
 */
export async function onPinnedRuntime(entry) {
  // On SIGUSR1, Node would by default open a debugger port, which no command needs.
  process.on('SIGUSR1', () => {})
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return true
  const script = fileURLToPath(entry)
  const pinned = pinnedRuntime(dirname(script))
  if (pinned === undefined) {
    console.error(`Error: ${tooOld(process)}`)
    process.exit(255)
  }
  await wrap(pinned, [script, ...process.argv.slice(2)])
  return false
}

/** The platforms for which `npm install` brings a Node (`optionalDependencies` in package.json). */
const brought = ['linux x64', 'linux arm64', 'win32 x64']

/** Says that a Node is too old and where a newer one comes from: not every platform gets one from `npm install`. */
export function tooOld({ version, platform, arch }) {
  const needed = `Node ${version} is too old: version ${oldest.join('.')} or newer is needed.`
  if (brought.includes(`${platform} ${arch}`)) return `${needed} Run "npm install" here, which brings one.`
  const system = platform === 'darwin' ? 'macOS' : platform
  return `${needed} For ${system} on ${arch}, "npm install" brings none: install one, and put it first in PATH.`
}

/**
 * Says why the pinned Node cannot be started. The package of Linux is for glibc and has no mark that keeps it from systems with musl, where
 * the program is there, and the loader that it asks for is not.
 */
export function notStarted(program, error) {
  if (error.code !== 'ENOENT' || process.platform !== 'linux' || !existsSync(program)) return `${program} cannot be started: ${error.message}`
  return `${program} needs glibc, which this system (musl, as Alpine has) lacks: install Node ${oldest.join('.')} or newer, and the package with "npm install --omit=optional"`
}

/**
 * Sets variables that the command-line library reads when it is loaded. `HOME` and `SHELL` where the user of the process has no entry in the
 * list of users, as in many containers: it fails without both; container runtimes set the same `HOME`. `NO_COLOR` in continuous integration,
 * where it would colour what is no terminal.
 */
export function setLibraryVariables() {
  if (process.env.CI && !process.stderr.isTTY && !process.env.FORCE_COLOR) process.env.NO_COLOR = '1'
  try {
    userInfo()
  } catch {
    process.env.HOME = process.env.HOME || '/'
    process.env.SHELL = process.env.SHELL || ''
  }
}

/**
 * Runs a command in place of this process: signals are forwarded to it, and this process ends when it ends. The IPC channel to the
 * command closes when this process is killed. A command that listens on the channel (actors/runtime/signals.ts) announces that and then
 * receives signals as messages, so that it can tell the two copies of a signal to the process group from two signals.
 */
async function wrap(program, args) {
  const { spawn } = await import('node:child_process')
  const env = { ...process.env, MESH_WRAPPER: String(process.pid) }
  const child = spawn(program, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env })
  let listens = false
  child.on('message', (message) => {
    listens = listens || (message !== null && message.listens === true)
  })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals)
    process.on(signal, () => {
      if (listens && child.connected) child.send({ signal }, () => {})
      else child.kill(signal)
    })
  child.on('error', (error) => {
    console.error(`Error: ${notStarted(program, error)}`)
    process.exit(255)
  })
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
    // The signal may take a moment. If it does not end this process, the exit status is 255.
    setTimeout(() => process.exit(255), 1000)
  })
}

/** The Node in the nearest node_modules, searched upwards from a folder. */
function pinnedRuntime(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', '.bin', 'node')
    if (existsSync(candidate)) return candidate
    if (folder === dirname(folder)) return undefined
  }
}
