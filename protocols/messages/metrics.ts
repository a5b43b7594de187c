/** The metrics that actors report when asked. */
import type { ActorStats } from './envelope.ts'

/** All series of one metric. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** Upper bounds of a histogram's buckets in ascending order, without the infinite one; empty for other types. */
  readonly buckets: readonly number[]
  /** Whether the labels name the actor or what it follows, so that the series end when it is removed. */
  readonly isOwn?: boolean
  readonly series: readonly MetricSeries[]
}

/** A combination of labels and its values. */
export interface MetricSeries {
  /** The values of all labels of the metric, by name, in the same order for all series. */
  readonly labels: Readonly<Record<string, string>>
  /** One number; for a histogram the non-cumulative count of each bucket including the infinite one, then the sum of all observations. */
  readonly values: readonly number[]
}

/** The metrics of one actor since it started. */
export interface ActorMetrics {
  readonly stats: ActorStats
  /** Unique for each start of the actor. */
  readonly incarnation: string
  readonly families: readonly MetricFamily[]
}
