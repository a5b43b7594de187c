// Plain JavaScript that any Node from 14 on can read: finds out whether this Node can run the project, and if not, starts
// the one that the lock file brings (DESIGN: runtime) with the same arguments.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Oldest Node that strips types and shares ports between threads. */
const oldest = [22, 18]

/** Resolves to true when this process can go on; otherwise hands over to the pinned runtime, or says what is missing. */
export async function onPinnedRuntime(entry) {
  // The runtime would open a debugger. Nothing that the commands do needs one.
  process.on('SIGUSR1', () => {})
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return true
  const script = fileURLToPath(entry)
  const pinned = pinnedRuntime(dirname(script))
  if (pinned === undefined) {
    console.error(
      `Error: Node ${process.version} is too old: version ${oldest.join('.')} or newer is needed. Run "npm install" here, which brings one.`,
    )
    process.exit(255)
  }
  await wrap(pinned, [script, ...process.argv.slice(2)])
  return false
}

/**
 * Runs a command in this process's place: signals go to it, and its end is the end of this process. The channel to it closes
 * when this process is killed. A command that listens to it (actors/runtime/signals.ts) says so, and is then told of signals
 * by message, so that it can tell the copies of one signal to the whole group from two signals.
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
    console.error(`Error: ${program} cannot be started: ${error.message}`)
    process.exit(255)
  })
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
    // The signal may take a moment. One that cannot end this process leaves the status a shell gives for it.
    setTimeout(() => process.exit(255), 1000)
  })
}

/** The Node of the nearest node_modules, found by walking up. */
function pinnedRuntime(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', '.bin', 'node')
    if (existsSync(candidate)) return candidate
    if (folder === dirname(folder)) return undefined
  }
}
