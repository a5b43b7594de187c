/** Runs the discovery service as a process until a signal ends it. */
import { setFlagsFromString } from 'node:v8'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Settings } from '../../src/cli/settings.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { collectGarbageWhenIdle } from '../runtime/idle-collection.ts'
import { keepMemoryOutOfFiles } from '../runtime/memory-files.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { boundYoungGeneration } from '../runtime/young-generation.ts'
import { type DiscoveryService, startDiscovery } from './service.ts'

/**
 * Maximum growth of a thread's heap beyond its size after the last collection, in percent. V8's default is a heap four times that size,
 * so that resident memory depends on the worst moment; with twice the size there is no measurable CPU cost.
 */
const heapGrowth = 100
/**
 * Size below which the heap of a thread is not marked as a whole, in MiB: heaps of threads that connect 400 proxies stay below it. V8's
 * own first limit follows from the size after loading the modules, so that a heap is marked several times on its way to the size it keeps.
 */
const initialHeapMb = 96
/**
 * Settings of V8 once the service is ready. The middle compiler runs on the thread whose function it compiles, and the last one compiles a
 * function after 15,000 calls instead of 3,000; garbage is collected as before.
 */
const whenReady = ['--no-single-threaded-gc-in-background', '--efficiency-mode']

/**
 * Starts the service; ends the process after an orderly stop by a signal. `settings`: what its flags and variables are set to. Rejects when the service
 * cannot start or stop.
 */
export async function runDiscovery(options: DiscoveryOptions, log: LogOptions, settings: () => Promise<Settings>): Promise<never> {
  // Set before threads are started, because they apply to threads started later.
  setFlagsFromString(`--heap-growing-percent=${heapGrowth}`)
  setFlagsFromString(`--initial-heap-size=${initialHeapMb}`)
  collectGarbageWhenIdle()
  boundYoungGeneration()
  let service: DiscoveryService | undefined
  const stopped = new Promise<string>((resolve) =>
    listenToSignals({
      stop: resolve,
      reload: () => service?.reload(),
      ignored: (reason) => service?.log('default').warn(reason),
    }),
  )
  // Started before keys are in memory, in parallel with the loading of modules.
  const hardened = keepMemoryOutOfFiles()
  service = await startDiscovery(options, log, {}, settings)
  void service.ready().then(() => {
    for (const flag of whenReady) setFlagsFromString(flag)
  })
  const { fatal } = service
  process.on('uncaughtException', (error) => {
    fatal(error)
    process.exit(1)
  })
  for (const failure of await hardened) service.log('default').warn(failure)
  await service.stop(await stopped)
  process.exit(0)
}
