/** Runs the discovery service as a process: until a signal ends it. */
import { setFlagsFromString } from 'node:v8'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { keepMemoryOutOfFiles } from '../runtime/memory-files.ts'
import { collectAtRest } from '../runtime/rest.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { type DiscoveryService, startDiscovery } from './service.ts'

/**
 * How far the heap of a thread may grow beyond what was in use after the last collection, in percent. V8 lets it grow to four times
 * that, so that what is resident depends on how much was in flight at the worst moment; twice costs no CPU that can be measured.
 */
const heapGrowth = 100

/** Starts the service and ends the process when a signal has ended it in order. Rejects when it cannot start or end. */
export async function runDiscovery(options: DiscoveryOptions, log: LogOptions): Promise<never> {
  // Before threads start: it holds for all of them.
  setFlagsFromString(`--heap-growing-percent=${heapGrowth}`)
  collectAtRest()
  let service: DiscoveryService | undefined
  const stopped = new Promise<string>((resolve) =>
    listenToSignals({
      stop: resolve,
      reload: () => service?.reload(),
      ignored: (reason) => service?.log('default').warn(reason),
    }),
  )
  // Before there are keys in memory, and while modules are loaded.
  const hardened = keepMemoryOutOfFiles()
  service = await startDiscovery(options, log)
  for (const failure of await hardened) service.log('default').warn(failure)
  await service.stop(await stopped)
  process.exit(0)
}
