/** The metrics of a whole process: of every actor (merged over its restarts), of the supervisor's thread, and of the process itself. */
import type { ActorStats } from '../../protocols/messages/envelope.ts'
import type { ActorMetrics, MetricFamily } from '../../protocols/messages/metrics.ts'
import { compare } from '../../src/model/order.ts'
import { collected, Exposition } from './exposition.ts'
import { MetricTotals } from './metric-totals.ts'
import { Counter, Gauge, MetricRegistry } from './metrics.ts'
import { ProcessMetrics } from './process-metrics.ts'
import type { Supervisor } from './supervisor.ts'

/** Collects the metrics of all actors and of the process, and merges them. */
export class MergedMetrics {
  readonly #supervisor: Supervisor
  readonly #own: MetricRegistry
  readonly #process: ProcessMetrics
  readonly #totals = new MetricTotals()

  /** `own`: the metrics of the supervisor's thread. `isSampling`: see {@link ProcessMetrics}. */
  constructor(supervisor: Supervisor, own: MetricRegistry, isSampling: boolean) {
    this.#supervisor = supervisor
    this.#own = own
    this.#process = new ProcessMetrics(isSampling)
    const restarts = new Counter({ name: 'actor_restarts', help: 'restarts of an actor', labelNames: ['actor'] })
    own.add('actor_restarts', {
      family() {
        restarts.reset()
        for (const state of supervisor.states()) restarts.inc({ actor: state.name }, state.restarts)
        return restarts.family()
      },
    })
  }

  /**
   * Returns all metrics, sorted by name. A running actor that does not answer in time counts with its last answer. `silent` is called with the
   * number of actors that did not answer, before the supervisor's own metrics are read, so that it may set one of those.
   */
  async collect(silent: (actors: number) => void): Promise<Exposition> {
    const answers = await this.#supervisor.askAll<ActorMetrics>('*', 'metrics')
    for (const { stats, incarnation, families } of answers)
      this.#totals.take(stats.name, { incarnation, families: [...families, ...statsFamilies(stats)] })
    silent(this.#supervisor.states().length - answers.length)
    this.#totals.take('', { incarnation: '', families: this.#own.collect() })
    const states = new Map(this.#supervisor.states().map(({ name, state }) => [name, state]))
    const isRunning = (actor: string) => actor === '' || states.get(actor) === 'running'
    const families = this.#totals.merged(isRunning, (actor) => states.has(actor)).map(collected)
    return new Exposition([...families, ...(await this.#process.collect())].sort((one, other) => compare(one.name, other.name)))
  }
}

/** The statistics of one actor as metrics. */
function statsFamilies(stats: ActorStats): MetricFamily[] {
  const registry = new MetricRegistry()
  const declare = (name: string, help: string) => ({ name, help, labelNames: ['actor'] as const, isOwn: true, registers: [registry] })
  const labels = { actor: stats.name }
  new Gauge(declare('actor_mailbox_depth', 'messages waiting in the mailbox of an actor')).set(labels, stats.depth)
  new Counter(declare('actor_messages_processed', 'messages that an actor has processed')).inc(labels, stats.processed)
  new Counter(declare('actor_messages_coalesced', 'messages replaced by newer ones before they were processed')).inc(labels, stats.coalesced)
  new Gauge(declare('actor_event_loop_utilisation', 'share of time that the event loop of an actor was busy')).set(labels, stats.utilisation)
  new Gauge(declare('actor_heap_bytes', 'JavaScript heap in use in the thread of an actor')).set(labels, stats.heapBytes)
  new Counter(declare('actor_cpu_seconds', 'CPU time of the thread of an actor')).inc(labels, stats.cpuSeconds)
  return registry.collect()
}
