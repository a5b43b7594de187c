/** Merges the metrics of all actors and writes them in the Prometheus text format (version 0.0.4). */
import type { MetricFamily } from '../../protocols/messages/metrics.ts'

/** Media type of the text format. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** The metrics of one incarnation of an actor, as last collected. */
interface Counted {
  readonly incarnation: string
  readonly families: readonly MetricFamily[]
}

/**
 * The metrics of all actors across their restarts. Counters and histograms of an ended incarnation stay in the sum with their last
 * values, so that no counter decreases; its gauges are dropped.
 */
export class MetricsLedger {
  readonly #last = new Map<string, Counted>()
  readonly #ended = new Sums()

  /** Stores the metrics collected from one actor. */
  take(actor: string, counted: Counted): void {
    const before = this.#last.get(actor)
    if (before && before.incarnation !== counted.incarnation) this.#end(before)
    this.#last.set(actor, counted)
  }

  /**
   * All metrics, sorted by name. A running actor that did not answer this time counts with its last answer; `running` returns whether an
   * actor runs.
   */
  merged(running: (actor: string) => boolean): MetricFamily[] {
    for (const [actor, counted] of [...this.#last]) {
      if (running(actor)) continue
      this.#end(counted)
      this.#last.delete(actor)
    }
    const sums = new Sums()
    for (const family of this.#ended.families()) sums.add(family)
    for (const { families } of this.#last.values()) for (const family of families) sums.add(family)
    return sums.families()
  }

  #end({ families }: Counted): void {
    for (const family of families) if (family.type !== 'gauge') this.#ended.add(family)
  }
}

/** Adds up families of the same name, series by series. */
class Sums {
  readonly #families = new Map<string, { family: MetricFamily; series: Map<string, number[]> }>()

  add(family: MetricFamily): void {
    let known = this.#families.get(family.name)
    if (!known) {
      known = { family, series: new Map() }
      this.#families.set(family.name, known)
    }
    for (const { labels, values } of family.series) {
      const sum = known.series.get(labels)
      if (sum) for (const [index, value] of values.entries()) sum[index] = (sum[index] ?? 0) + value
      else known.series.set(labels, [...values])
    }
  }

  families(): MetricFamily[] {
    return [...this.#families.values()]
      .map(({ family, series }) => ({ ...family, series: [...series].map(([labels, values]) => ({ labels, values })) }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
  }
}

/** Writes metrics in the text format. */
export function writeExposition(families: readonly MetricFamily[]): string {
  const lines: string[] = []
  for (const { name, help, type, buckets, series } of families) {
    lines.push(`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${name} ${type}`)
    for (const { labels, values } of series) {
      if (type !== 'histogram') {
        lines.push(`${name}${braces(labels)} ${number(values[0] ?? 0)}`)
        continue
      }
      let count = 0
      for (const [index, bound] of [...buckets, Number.POSITIVE_INFINITY].entries()) {
        count += values[index] ?? 0
        lines.push(`${name}_bucket${braces(`${labels === '' ? '' : `${labels},`}le="${number(bound)}"`)} ${count}`)
      }
      lines.push(`${name}_sum${braces(labels)} ${number(values.at(-1) ?? 0)}`, `${name}_count${braces(labels)} ${count}`)
    }
  }
  return `${lines.join('\n')}\n`
}

function braces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`
}

function number(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
