// Plain JavaScript that any Node from 14 on can read: finds out whether this Node can run the project, and if not, starts
// the one that the lock file brings (DESIGN: runtime) with the same arguments.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Oldest Node that strips types and shares ports between threads. */
const oldest = [22, 18]

/** Resolves to true when this process can go on; otherwise hands over to the pinned runtime, or says what is missing. */
export async function onPinnedRuntime(entry) {
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
  const child = spawn(pinned, [script, ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (signal) process.kill(process.pid, signal)
    else process.exit(code ?? 1)
  })
  return false
}

/** The Node of the nearest node_modules, found by walking up. */
function pinnedRuntime(from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', '.bin', 'node')
    if (existsSync(candidate)) return candidate
    if (folder === dirname(folder)) return undefined
  }
}
