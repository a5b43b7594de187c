/** Merges the metrics of all actors over their restarts. */
import type { MetricFamily, MetricSeries } from '../../protocols/messages/metrics.ts'

/** The metrics of one incarnation of an actor, as last collected. */
interface Counted {
  readonly incarnation: string
  readonly families: readonly MetricFamily[]
}

/**
 * The metrics of all actors across their restarts. Counters and histograms of an ended incarnation stay in the sum with their last
 * values, so that no counter decreases; its gauges are dropped. Series of an actor's own end when it is removed.
 */
export class MetricTotals {
  readonly #last = new Map<string, Counted>()
  readonly #ended = new Sums()
  /** By actor the series of its own. */
  readonly #ownEnded = new Map<string, Sums>()

  /** Stores the metrics collected from one actor. */
  take(actor: string, counted: Counted): void {
    const before = this.#last.get(actor)
    if (before && before.incarnation !== counted.incarnation) this.#end(actor, before)
    this.#last.set(actor, counted)
  }

  /**
   * All metrics. A running actor that did not answer this time counts with its last answer; `running` returns whether an actor runs, and `exists`
   * whether it runs or is to be started again.
   */
  merged(running: (actor: string) => boolean, exists: (actor: string) => boolean): MetricFamily[] {
    for (const [actor, counted] of [...this.#last]) {
      if (running(actor)) continue
      this.#end(actor, counted)
      this.#last.delete(actor)
    }
    for (const actor of [...this.#ownEnded.keys()]) if (!exists(actor)) this.#ownEnded.delete(actor)
    const sums = new Sums()
    for (const ended of [this.#ended, ...this.#ownEnded.values()]) for (const family of ended.families()) sums.add(family)
    for (const { families } of this.#last.values()) for (const family of families) sums.add(family)
    return sums.families()
  }

  #end(actor: string, { families }: Counted): void {
    const own = this.#ownEnded.get(actor) ?? new Sums()
    for (const family of families) if (family.type !== 'gauge') (family.isOwn ? own : this.#ended).add(family)
    this.#ownEnded.set(actor, own)
  }
}

/** Adds up families of the same name, series by series. */
class Sums {
  readonly #families = new Map<string, { family: MetricFamily; series: Map<string, MetricSeries & { readonly values: number[] }> }>()

  add(family: MetricFamily): void {
    let known = this.#families.get(family.name)
    if (!known) {
      known = { family, series: new Map() }
      this.#families.set(family.name, known)
    }
    for (const { labels, values } of family.series) {
      const key = Object.values(labels).join('\u0000')
      const sum = known.series.get(key)?.values
      if (sum) for (const [index, value] of values.entries()) sum[index] = (sum[index] ?? 0) + value
      else known.series.set(key, { labels, values: [...values] })
    }
  }

  families(): MetricFamily[] {
    return [...this.#families.values()].map(({ family, series }) => ({ ...family, series: [...series.values()] }))
  }
}
