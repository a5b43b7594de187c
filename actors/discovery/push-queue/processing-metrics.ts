/** Metrics of the way from events to pushes: what came, how long it waited for more, and what is in force (`galley_runtime_*`, docs/metrics.md). */
import { kinds } from '../../../src/config/kinds.ts'
import type { DueCause } from '../../../src/push/pacing/rounds.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { Counter, Gauge, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'
import type { ScheduleEvents } from './push-schedule.ts'

/** Upper bounds in milliseconds, from one to about an hour. */
const spans = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304]
/** Upper bounds of numbers of events. */
const amounts = [1, 2, 4, 8, 16, 64, 256, 1024, 4096, 16_384]

/** Counts events and the snapshots that are made of them. */
export class ProcessingMetrics implements ScheduleEvents {
  readonly #events: Counter
  readonly #span: Histogram
  readonly #published: Counter
  readonly #lifetime: Histogram
  readonly #amount: Histogram
  readonly #changes: Counter
  readonly #resets: Counter
  readonly #quiet: Counter
  readonly #longest: Counter
  /** Monotonic milliseconds of the last event, and of the last published snapshot. */
  #lastEvent: number | undefined
  #lastPublished: number | undefined

  constructor(registry: MetricRegistry, planner: Planner) {
    const registers = [registry]
    const counter = (name: string, help: string) => new Counter({ name: `galley_runtime_${name}`, help, registers })
    const histogram = (name: string, help: string, buckets: readonly number[]) =>
      new Histogram({ name: `galley_runtime_processor_${name}`, help, buckets, registers })
    this.#events = counter('processor_events_processed_total', 'events of sources that were processed')
    this.#span = histogram('event_span_duration_milliseconds', 'time between two events of sources', spans)
    this.#published = counter('processor_snapshots_published_total', 'snapshots of which a push was made')
    this.#lifetime = histogram('snapshot_lifetime_duration_milliseconds', 'time from one published snapshot to the next', spans)
    this.#amount = histogram('snapshot_events_total', 'changes in a published snapshot', amounts)
    this.#changes = counter('strategy_on_change_total', 'changes that wait for a push')
    this.#resets = counter('strategy_timer_resets_total', 'changes that began the quiet period before a push again')
    this.#quiet = counter('strategy_timer_quiesce_reached_total', 'pushes after a quiet period')
    this.#longest = counter('strategy_timer_max_time_reached_total', 'pushes because changes kept coming for the maximum time')
    new Gauge({
      name: 'galley_runtime_state_type_instances_total',
      help: 'objects in force, by group and kind',
      labelNames: ['collection'],
      registers,
      collect() {
        const { state, snapshot } = planner
        for (const { name, group } of kinds.values())
          this.set({ collection: `${group}.${snapshot.settings.names.domain}/${name}` }, state.objects.countOf(name))
      },
    })
  }

  /** Counts an event of a source. */
  event(): void {
    const now = monotonicMs()
    this.#events.inc()
    if (this.#lastEvent !== undefined) this.#span.observe(now - this.#lastEvent)
    this.#lastEvent = now
  }

  changed(waits: boolean): void {
    this.#changes.inc()
    if (waits) this.#resets.inc()
  }

  due(cause: DueCause): void {
    if (cause === 'quiet') this.#quiet.inc()
    if (cause === 'longest') this.#longest.inc()
  }

  /** Counts a published snapshot with the number of changes in it. */
  published(changes: number): void {
    const now = monotonicMs()
    this.#published.inc()
    this.#amount.observe(changes)
    if (this.#lastPublished !== undefined) this.#lifetime.observe(now - this.#lastPublished)
    this.#lastPublished = now
  }
}
