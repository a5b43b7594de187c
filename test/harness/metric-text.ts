/** Metrics as text. */
import { collected, Exposition } from '../../actors/runtime/exposition.ts'
import type { MetricsFormat } from '../../actors/runtime/metrics-format.ts'
import type { MetricFamily } from '../../protocols/messages/metrics.ts'

/** Returns labels as they stand in a metrics page, `type="cds",node="a"`. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',')
}

/** Writes metrics of actors. */
export function metricsText(families: readonly MetricFamily[], format: MetricsFormat = 'text'): Promise<string> {
  return new Exposition(families.map(collected)).page(format)
}
