/** Runs the discovery service as a process: until a signal ends it. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { type DiscoveryService, startDiscovery } from './supervisor.ts'

/** Starts the service and ends the process when a signal has ended it in order. Rejects when it cannot start or end. */
export async function runDiscovery(options: DiscoveryOptions, log: LogOptions): Promise<never> {
  let service: DiscoveryService | undefined
  const stopped = new Promise<string>((resolve) =>
    listenToSignals({
      stop: resolve,
      reload: () => service?.reload(),
      ignored: (reason) => service?.log('default').warn(reason),
    }),
  )
  service = await startDiscovery(options, log)
  await service.stop(await stopped)
  process.exit(0)
}
