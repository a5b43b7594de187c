/** The metrics that every source of configuration objects has. */
import { Gauge, type MetricRegistry } from '../../runtime/metrics.ts'

/** What is measured of a source: the number of files or objects that it reads, and whether all of them could be read and identified. */
export interface MeasuredSource {
  readonly size: () => number
  readonly isComplete: () => boolean
}

/** Registers the metrics of a source. */
export function measureSource(source: string, { size, isComplete }: MeasuredSource, register: MetricRegistry): void {
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers: [register],
      collect() {
        this.set({ source }, value())
      },
    })
  gauge('pilot_config_source_files', 'files that a source of configuration objects reads; objects of another control plane', size)
  gauge('pilot_config_source_complete', 'whether every object of a source could be read and identified', () => Number(isComplete()))
}
