/** Runs the discovery service as a process: until a signal ends it. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { startDiscovery } from './supervisor.ts'

/** Starts the service and resolves when a signal has ended it in order. Rejects when it cannot start. */
export async function runDiscovery(options: DiscoveryOptions, log: LogOptions): Promise<void> {
  const service = await startDiscovery(options, log)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await service.stop()
  process.exit(0)
}
