/** The metrics page: the metrics of the main thread and of all actors, merged. */
import { FairSlots } from '../../../src/model/fair-slots.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Exposition } from '../../runtime/exposition.ts'
import { MergedMetrics } from '../../runtime/merged-metrics.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import type { MetricsFormat } from '../../runtime/metrics-format.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { pause } from '../../runtime/timers.ts'

/** The maximum number of requests that wait for the page, of all clients and of one. */
const asking = { all: 16, ofClient: 4 }
/**
 * After a scrape the next begins when this many times its duration have passed, at most `mostMs` milliseconds: clients that ask all the time
 * cost every actor no more than a fifth of its time.
 */
const rest = { times: 4, mostMs: 1000 }

/** A request that waits for the page, and whether it gave way to another one. */
interface Asking {
  gaveWay: boolean
}

/** Makes the metrics page. */
export class Scraper {
  readonly #merged: MergedMetrics
  readonly #scrapes: Counter
  readonly #failures: Counter<'type'>
  readonly #asking = new FairSlots<Asking>(asking.all, asking.ofClient)
  #running: Promise<Exposition> | undefined
  /** Monotonic milliseconds before which no scrape begins. */
  #restsUntil = 0

  /** `own` are the metrics of the main thread. */
  constructor(supervisor: Supervisor, own: MetricRegistry) {
    this.#scrapes = new Counter({ name: 'scrapes_total', help: 'total scrapes', registers: [own] })
    this.#failures = new Counter({
      name: 'scrape_failures_total',
      help: 'failed scrapes: actors that did not answer',
      labelNames: ['type'],
      registers: [own],
    })
    this.#merged = new MergedMetrics(supervisor, own, true)
  }

  /**
   * Returns the page for a client; undefined when the request gives way because too many wait, the oldest of the client with the most
   * first.
   */
  async scrapeFor(client: string, format: MetricsFormat): Promise<string | undefined> {
    const own: Asking = { gaveWay: false }
    const leaving = this.#asking.take(client, own)
    if (leaving) leaving.gaveWay = true
    try {
      const page = await this.scrape(format)
      return own.gaveWay ? undefined : page
    } finally {
      this.#asking.release(own)
    }
  }

  /** Returns the page. Concurrent calls share one scrape, and those for the same format one text. */
  async scrape(format: MetricsFormat = 'text'): Promise<string> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = undefined
    })
    return (await this.#running).page(format)
  }

  async #scrape(): Promise<Exposition> {
    const early = this.#restsUntil - monotonicMs()
    if (early > 0) await pause(early)
    const began = monotonicMs()
    this.#scrapes.inc()
    try {
      return await this.#merged.collect((silent) => {
        if (silent > 0) this.#failures.inc({ type: 'actor' }, silent)
      })
    } finally {
      this.#restsUntil = monotonicMs() + Math.min(rest.times * (monotonicMs() - began), rest.mostMs)
    }
  }
}
