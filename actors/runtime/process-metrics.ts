/** The default metrics of prom-client: CPU and memory of the process; event loop, heap, garbage collection and handles of the main thread. */
import { readdir, stat } from 'node:fs/promises'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { CollectedFamily } from './exposition.ts'

/** An interval that never passes, in milliseconds: the delay of the event loop is not sampled. */
const never = 2 ** 31 - 1
/** The metrics of the samples; `nodejs_eventloop_lag_seconds` itself is measured with each scrape. */
const sampled = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map((name) => `nodejs_eventloop_lag_${name}_seconds`)

/** Measures the process. */
export class ProcessMetrics {
  readonly #registry = new Registry()

  /** `isSampling`: whether the delay of the event loop is sampled every 10 ms, which costs 0.3 seconds of CPU a minute. */
  constructor(isSampling: boolean) {
    const before = process.cpuUsage()
    collectDefaultMetrics({ register: this.#registry, ...(isSampling ? {} : { eventLoopMonitoringPrecision: never }) })
    if (!isSampling) for (const name of sampled) this.#registry.removeSingleMetric(name)
    this.#countOpenFiles()
    // The library counts from now on.
    for (const [kind, microseconds] of [
      ['user_', before.user],
      ['system_', before.system],
      ['', before.user + before.system],
    ] as const) {
      const counter = this.#registry.getSingleMetric(`process_cpu_${kind}seconds_total`)
      if (counter instanceof Counter) counter.inc(microseconds / 1e6)
    }
  }

  /** Counts open files without a list of them, which takes the library a millisecond of this thread for a thousand. */
  #countOpenFiles(): void {
    const name = 'process_open_fds'
    if (!this.#registry.getSingleMetric(name)) return
    this.#registry.removeSingleMetric(name)
    new Gauge({
      name,
      help: 'Number of open file descriptors.',
      registers: [this.#registry],
      async collect() {
        this.set(await openFiles('/proc/self/fd'))
      },
    })
  }

  /** All metrics of the process. */
  async collect(): Promise<CollectedFamily[]> {
    // The library declares the types as numbers, and has their names.
    const families = (await this.#registry.getMetricsAsJSON()) as unknown as readonly CollectedFamily[]
    return families.map(({ name, help, type, values }) => ({ name, help, type, values }))
  }
}

/** The number of open files in a directory of `/proc`: its size, or on Linux before 6.2, where that is zero, the length of its list. */
async function openFiles(directory: string): Promise<number> {
  const { size } = await stat(directory)
  return size > 0 ? size : (await readdir(directory)).length
}
