/** Runs the agent as a process, until its proxy exits or a signal shuts both down. */
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { collectGarbageWhenIdle } from '../runtime/idle-collection.ts'
import { openLog } from '../runtime/log.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { boundYoungGeneration } from '../runtime/young-generation.ts'
import { fatalStatus, runUntilEnded } from './service.ts'
import { Shutdown } from './shutdown.ts'

/** Runs the agent and exits with the status of docs/agent.md, P4. Rejects when the agent cannot start. */
export async function runAgent(options: ProxyOptions, logOptions: LogOptions): Promise<never> {
  collectGarbageWhenIdle()
  boundYoungGeneration()
  const opened = openLog(logOptions)
  const { log } = opened
  process.on('uncaughtException', (error) => {
    opened.fatal(error)
    process.exit(fatalStatus)
  })
  const shutdown = new Shutdown()
  listenToSignals({
    stop: (reason) => shutdown.request(reason),
    hurry: () => shutdown.stopDraining(),
    reload: () => {
      opened.reopen()
      log('default').info('SIGHUP: log files are opened anew; flags and variables are read at start only')
    },
    ignored: (reason) => log('default').warn(reason),
  })
  try {
    const status = await runUntilEnded(options, opened, shutdown)
    await opened.flush()
    process.exit(status)
  } catch (error) {
    log('default').error((error as Error).message)
    await opened.flush()
    throw error
  }
}
