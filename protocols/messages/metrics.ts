/** What actors answer when they are asked for their metrics. */
import type { ActorStats } from './envelope.ts'

/** All series of one metric. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** Upper bounds of a histogram's buckets in ascending order, without the last one, which is infinite; empty for other types. */
  readonly buckets: readonly number[]
  readonly series: readonly MetricSeries[]
}

/** One combination of labels and what was measured for it. */
export interface MetricSeries {
  /** The labels as the text format has them, `type="cds",node="a"`; empty without labels. */
  readonly labels: string
  /** One number; for a histogram the count of each bucket by itself, that of the infinite bucket, then the sum of all observations. */
  readonly values: readonly number[]
}

/** What one actor measured since it started. */
export interface ActorMetrics {
  readonly stats: ActorStats
  /** Differs from start to start of the same actor. */
  readonly incarnation: string
  readonly families: readonly MetricFamily[]
}
