/** Health probe by a command. */
import { spawn } from 'node:child_process'

/** The maximum length of the command's output that is kept for the reason of a failure. */
const saidBytes = 500

/**
 * Runs a command without a shell, in a process group of its own. Rejects with the reason when it cannot be started or exits with a status
 * other than 0. When the signal is aborted, the process group is killed.
 */
export function runCommand(command: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const [file = '', ...details] = command
    const child = spawn(file, details, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        if (said.length < saidBytes) said = (said + chunk.toString('latin1')).slice(0, saidBytes)
      })
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // The process group has exited already.
      }
      reject(new Error('given up'))
    }
    signal.addEventListener('abort', kill)
    child.on('error', (error) => {
      signal.removeEventListener('abort', kill)
      reject(new Error(`${file} cannot be run: ${error.message}`))
    })
    child.on('exit', (status, killedBy) => {
      signal.removeEventListener('abort', kill)
      for (const stream of [child.stdout, child.stderr]) stream.destroy()
      if (status === 0) resolve()
      else reject(new Error(`${file} ended with ${killedBy ?? `status ${status}`}: ${said.trim()}`))
    })
  })
}
