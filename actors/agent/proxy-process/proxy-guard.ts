/** What has the system end the proxy when the agent is killed (docs/agent.md, P3). */
import { execFile } from 'node:child_process'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { findProgram } from './programs.ts'

/** Longest time to find out whether the program knows its option, in milliseconds. */
const trialMs = 2000

/**
 * What stands before the command of the proxy: `setpriv` of util-linux, with the option for it (`prctl(2)`, `PR_SET_PDEATHSIG`). Nothing where there is no such program, or one
 * that does not know the option, as older ones and that of BusyBox; the log says so at level debug.
 */
export async function proxyGuard(log: ScopedLogger): Promise<string[]> {
  if (process.platform !== 'linux') return []
  try {
    const [program, ...args] = [findProgram('setpriv'), '--pdeathsig', 'KILL', '--']
    await new Promise<void>((resolve, reject) =>
      execFile(program, [...args, program, '--version'], { timeout: trialMs }, (error) => (error ? reject(error) : resolve())),
    )
    return [program, ...args]
  } catch (error) {
    log.debug(`the proxy outlives the agent if that is killed: ${(error as Error).message.trim()}`)
    return []
  }
}
