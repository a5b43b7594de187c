/** Writes metrics with a registry of prom-client, in the text format of Prometheus or as OpenMetrics. */
import { type Metric, Registry, type RegistryContentType } from 'prom-client'
import type { MetricFamily } from '../../protocols/messages/metrics.ts'
import { type MetricsFormat, mediaTypes } from './metrics-format.ts'

/** One metric as a registry reads it. */
export interface CollectedFamily {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly values: readonly CollectedValue[]
}

/** One line of a metric. */
interface CollectedValue {
  /** The name of the line where it is not that of the metric. */
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  /** Further labels, which the registry writes once for all lines that share the object. */
  readonly sharedLabels?: Readonly<Record<string, string>>
  readonly value: number
}

/** Returns the lines of a metric of actors. The buckets of a histogram become cumulative. */
export function collected({ name, help, type, buckets, series }: MetricFamily): CollectedFamily {
  if (type !== 'histogram') return { name, help, type, values: series.map(({ labels, values }) => ({ labels, value: values[0] ?? 0 })) }
  const values = series.flatMap(({ labels, values: counts }) => {
    let count = 0
    const lines: CollectedValue[] = [...buckets, Number.POSITIVE_INFINITY].map((bound, index) => {
      count += counts[index] ?? 0
      return { metricName: `${name}_bucket`, labels: { le: bound === Number.POSITIVE_INFINITY ? '+Inf' : bound }, sharedLabels: labels, value: count }
    })
    lines.push({ metricName: `${name}_sum`, labels: {}, sharedLabels: labels, value: counts.at(-1) ?? 0 })
    lines.push({ metricName: `${name}_count`, labels: {}, sharedLabels: labels, value: count })
    return lines
  })
  return { name, help, type, values }
}

/** The metrics of one scrape, each page of which is written when it is asked for first. */
export class Exposition {
  readonly #families: readonly CollectedFamily[]
  readonly #pages = new Map<string, Promise<string>>()

  constructor(families: readonly CollectedFamily[]) {
    this.#families = families
  }

  /** Returns the page in a format, with the names of all metrics prefixed. */
  page(format: MetricsFormat, prefix = ''): Promise<string> {
    const key = `${format} ${prefix}`
    const page = this.#pages.get(key) ?? this.#write(format, prefix)
    this.#pages.set(key, page)
    return page
  }

  /** Writes a page with a registry of its own: that of prom-client renames counters in place for OpenMetrics. */
  #write(format: MetricsFormat, prefix: string): Promise<string> {
    const registry = new Registry<RegistryContentType>()
    registry.setContentType(mediaTypes[format])
    for (const family of this.#families) registry.registerMetric(new PageMetric(family, format, prefix) as unknown as Metric)
    return registry.metrics()
  }
}

/**
 * A metric of a page. The registry needs `get` and the name only; the library's own metrics cannot take the counts of a histogram, and hold
 * series for the same whose labels read `a:1,b:2` in a row.
 */
class PageMetric implements CollectedFamily {
  /** Set by the registry: in OpenMetrics the name of a counter has no `_total`, which its lines have. */
  name: string
  readonly help: string
  readonly type: string
  readonly values: readonly CollectedValue[]

  constructor({ name, help, type, values }: CollectedFamily, format: MetricsFormat, prefix: string) {
    this.name = prefix + name
    this.help = help
    // OpenMetrics has no counters without `_total`, which the registry would add to the name.
    this.type = format === 'openmetrics' && type === 'counter' && !name.endsWith('_total') ? 'unknown' : type
    this.values = prefix === '' ? values : values.map((each) => (each.metricName ? { ...each, metricName: prefix + each.metricName } : each))
  }

  get(): this {
    return this
  }
}
