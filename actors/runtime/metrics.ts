/**
 * Metrics of an actor: counters, gauges and histograms as plain numbers. The main thread merges those of all actors on scrape
 * (merged-metrics.ts) and writes them with prom-client (exposition.ts).
 */
import type { MetricFamily, MetricSeries } from '../../protocols/messages/metrics.ts'

/** Label values. A missing label is the empty string; an undeclared label is ignored. */
export type Labels<Name extends string = string> = Readonly<Partial<Record<Name, string | number>>>

/** How a metric is declared. */
export interface MetricOptions<Name extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly Name[]
  /** Whether the labels name the actor or what it follows, so that the series end when it is removed; those of others stay. */
  readonly isOwn?: boolean
  /** Registries that the metric is added to; none by default. */
  readonly registers?: readonly MetricRegistry[]
}

/**
 * Maximum number of series of a metric, and of characters in a label value, because values come from users and proxies. Further series
 * are counted together in one whose labels are `other`.
 */
const most = { series: 5000, label: 256 }

/** The metrics of one actor. */
export class MetricRegistry {
  readonly #metrics = new Map<string, { family(): MetricFamily }>()

  /** Adds a metric. Throws when the name is taken. */
  add(name: string, metric: { family(): MetricFamily }): void {
    if (this.#metrics.has(name)) throw new Error(`metric ${name} is declared twice`)
    this.#metrics.set(name, metric)
  }

  /** All metrics as plain data. */
  collect(): MetricFamily[] {
    return [...this.#metrics.values()].map((metric) => metric.family())
  }
}

/** Common part of counters, gauges and histograms: series by their labels. */
abstract class Metric<Name extends string> {
  readonly #options: MetricOptions<Name>
  readonly #type: MetricFamily['type']
  readonly #buckets: readonly number[]
  readonly #labelNames: readonly Name[]
  readonly #others: Labels<Name>
  readonly #othersKey: string
  readonly #series = new Map<string, MetricSeries & { readonly values: number[] }>()

  constructor(options: MetricOptions<Name>, type: MetricFamily['type'], buckets: readonly number[]) {
    this.#options = options
    this.#type = type
    this.#buckets = buckets
    this.#labelNames = options.labelNames ?? []
    this.#others = Object.fromEntries(this.#labelNames.map((name) => [name, 'other'])) as Labels<Name>
    this.#othersKey = this.#key(this.#others)
    this.reset()
    for (const registry of options.registers ?? []) registry.add(options.name, this)
  }

  /** Removes all series. A metric without labels keeps one series with the value zero. */
  reset(): void {
    this.#series.clear()
    if (this.#labelNames.length === 0) this.at(undefined)
  }

  /** Removes the series with these labels. */
  remove(labels: Labels<Name>): void {
    this.#series.delete(this.#key(labels))
  }

  /** The metric as plain data. */
  family(): MetricFamily {
    const { name, help, isOwn = false } = this.#options
    return {
      name,
      help,
      type: this.#type,
      buckets: this.#buckets,
      isOwn,
      series: [...this.#series.values()].map(({ labels, values }) => ({ labels, values })),
    }
  }

  /** The values of the series with these labels, created if missing. */
  protected at(labels: Labels<Name> | undefined): number[] {
    const key = this.#key(labels)
    const known = this.#series.get(key)
    if (known) return known.values
    if (this.#series.size >= most.series && key !== this.#othersKey) return this.at(this.#others)
    const given = Object.fromEntries(this.#labelNames.map((name) => [name, this.#value(labels, name)]))
    const values = new Array<number>(this.#type === 'histogram' ? this.#buckets.length + 2 : 1).fill(0)
    this.#series.set(key, { labels: given, values })
    return values
  }

  #key(labels: Labels<Name> | undefined): string {
    const names = this.#labelNames
    return names.length === 1 ? this.#value(labels, names[0] as Name) : names.map((name) => this.#value(labels, name)).join('\u0000')
  }

  #value(labels: Labels<Name> | undefined, name: Name): string {
    const text = String(labels?.[name] ?? '')
    return text.length > most.label ? text.slice(0, most.label).toWellFormed() : text
  }
}

/** A counter. Negative and non-finite increments are ignored, because they must not end the actor. */
export class Counter<Name extends string = string> extends Metric<Name> {
  constructor(options: MetricOptions<Name>) {
    super(options, 'counter', [])
  }

  inc(labels?: Labels<Name> | number, count = 1): void {
    const amount = typeof labels === 'number' ? labels : count
    if (!(amount >= 0 && amount < Number.POSITIVE_INFINITY)) return
    const values = this.at(typeof labels === 'object' ? labels : undefined)
    values[0] = (values[0] as number) + amount
  }

  /** Creates the series with these labels and returns a function that adds one to it without looking it up. It must not be removed. */
  series(labels: Labels<Name>): () => void {
    const values = this.at(labels)
    return () => {
      values[0] = (values[0] as number) + 1
    }
  }
}

/** How a gauge is declared. */
export interface GaugeOptions<Name extends string> extends MetricOptions<Name> {
  /** Sets the present value; called each time the gauge is read. */
  readonly collect?: (this: Gauge<Name>) => void
}

/** A gauge. Gauges of the same name and labels in several actors are added up. */
export class Gauge<Name extends string = string> extends Metric<Name> {
  readonly #collect: ((this: Gauge<Name>) => void) | undefined

  constructor(options: GaugeOptions<Name>) {
    super(options, 'gauge', [])
    this.#collect = options.collect
  }

  set(labels: Labels<Name> | number, value = 0): void {
    if (typeof labels === 'number') this.at(undefined)[0] = labels
    else this.at(labels)[0] = value
  }

  inc(labels?: Labels<Name> | number, count = 1): void {
    const values = this.at(typeof labels === 'object' ? labels : undefined)
    values[0] = (values[0] as number) + (typeof labels === 'number' ? labels : count)
  }

  override family(): MetricFamily {
    this.#collect?.call(this)
    return super.family()
  }
}

/** Returns a function that declares gauges whose values are computed when they are read. */
export const gaugesOf =
  (...registers: readonly MetricRegistry[]) =>
  (name: string, help: string, value: () => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })

/** How a histogram is declared. */
export interface HistogramOptions<Name extends string> extends MetricOptions<Name> {
  /** Upper bounds of the buckets in ascending order; `+Inf` is added. */
  readonly buckets: readonly number[]
}

/** A histogram. NaN is ignored. */
export class Histogram<Name extends string = string> extends Metric<Name> {
  readonly #bounds: readonly number[]

  constructor(options: HistogramOptions<Name>) {
    super(options, 'histogram', options.buckets)
    this.#bounds = options.buckets
  }

  observe(labels: Labels<Name> | number, value = 0): void {
    const observed = typeof labels === 'number' ? labels : value
    if (Number.isNaN(observed)) return
    const values = this.at(typeof labels === 'number' ? undefined : labels)
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && observed > (bounds[bucket] as number)) bucket++
    values[bucket] = (values[bucket] as number) + 1
    const sum = bounds.length + 1
    values[sum] = (values[sum] as number) + observed
  }
}
