/** The metrics page: the metrics of the main thread and of all actors, merged. */
import { expositionType, writeExposition } from '../../runtime/exposition.ts'
import { MergedMetrics } from '../../runtime/merged-metrics.ts'
import { Counter, type Registry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'

/** Media type of the metrics page. */
export const scrapeType = expositionType

/** Makes the metrics page. */
export class Scraper {
  readonly #merged: MergedMetrics
  readonly #scrapes: Counter
  readonly #failures: Counter<'type'>
  #running: Promise<string> | undefined

  /** `own` are the metrics of the main thread. */
  constructor(supervisor: Supervisor, own: Registry) {
    this.#scrapes = new Counter({ name: 'scrapes_total', help: 'total scrapes', registers: [own] })
    this.#failures = new Counter({
      name: 'scrape_failures_total',
      help: 'failed scrapes: actors that did not answer',
      labelNames: ['type'],
      registers: [own],
    })
    this.#merged = new MergedMetrics(supervisor, own)
  }

  /** Returns the page. Concurrent calls share one result. */
  scrape(): Promise<string> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #scrape(): Promise<string> {
    this.#scrapes.inc()
    return writeExposition(
      await this.#merged.collect((silent) => {
        if (silent > 0) this.#failures.inc({ type: 'actor' }, silent)
      }),
    )
  }
}
