/** Runs the agent as a process: until its proxy has ended, or a signal ends both. */
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { keepMemoryOutOfFiles } from '../runtime/memory-files.ts'
import { collectAtRest } from '../runtime/rest.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { type AgentService, openAgentLog, startAgent } from './service.ts'

/** Starts the agent and ends the process with the status of docs/agent.md, P4. Rejects when it cannot start. */
export async function runAgent(options: ProxyOptions, logOptions: LogOptions): Promise<never> {
  collectAtRest()
  const opened = openAgentLog(logOptions)
  const { writer, log } = opened
  const early = Promise.withResolvers<undefined>()
  let service: AgentService | undefined
  const stop = (reason: string) => (service ? service.stop(reason) : early.resolve(undefined))
  listenToSignals({
    stop,
    hurry: stop,
    reload: () => {
      writer.reopen()
      log('default').info('SIGHUP: log files are opened anew; flags and variables are read at start only')
    },
    ignored: (reason) => log('default').warn(reason),
  })
  // Before there are keys in memory.
  const hardened = keepMemoryOutOfFiles()
  try {
    service = await Promise.race([startAgent(options, opened), early.promise])
    for (const failure of await hardened) log('default').warn(failure)
    const status = service ? await service.ended : 0
    await writer.flush()
    process.exit(status)
  } catch (error) {
    log('default').error((error as Error).message)
    await writer.flush()
    throw error
  }
}
