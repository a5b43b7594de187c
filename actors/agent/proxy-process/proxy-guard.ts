/** Makes the kernel kill a process when its parent is killed, the proxy with the agent (docs/agent.md, P3). */
import { execFile } from 'node:child_process'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { findProgram } from './programs.ts'

/** The timeout of the check whether `setpriv` supports the option, in milliseconds. */
const trialMs = 2000

/**
 * Returns the command prefix for the proxy's command: `setpriv` of util-linux with `--pdeathsig` (`prctl(2)`, `PR_SET_PDEATHSIG`). Empty,
 * with a log line at level debug, where `setpriv` is missing or does not support the option, as in older releases and BusyBox.
 */
export async function proxyGuard(log: Pick<ScopedLogger, 'debug'>): Promise<string[]> {
  if (process.platform !== 'linux') return []
  try {
    const [program, ...args] = [findProgram('setpriv'), '--pdeathsig', 'KILL', '--']
    await new Promise<void>((resolve, reject) =>
      execFile(program, [...args, program, '--version'], { timeout: trialMs }, (error) => (error ? reject(error) : resolve())),
    )
    return [program, ...args]
  } catch (error) {
    log.debug(`if the agent is killed, the proxy keeps running: ${(error as Error).message.trim()}`)
    return []
  }
}
