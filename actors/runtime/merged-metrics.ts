/** The metrics of a whole process: of every actor (merged over its restarts), of the supervisor's thread, and of the process itself. */
import type { ActorStats } from '../../protocols/messages/envelope.ts'
import type { ActorMetrics, MetricFamily } from '../../protocols/messages/metrics.ts'
import { wallClockMs } from './clock.ts'
import { MetricsLedger } from './exposition.ts'
import { Counter, Gauge, Registry } from './metrics.ts'
import type { Supervisor } from './supervisor.ts'

/** Collects the metrics of all actors and merges them. */
export class MergedMetrics {
  readonly #supervisor: Supervisor
  readonly #own: Registry
  readonly #prefix: string
  readonly #ledger = new MetricsLedger()

  /** `own`: the metrics of the supervisor's thread. `prefix`: added to the names of metrics that do not begin with it. */
  constructor(supervisor: Supervisor, own: Registry, prefix = '') {
    this.#supervisor = supervisor
    this.#own = own
    this.#prefix = prefix
    processMetrics(own)
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
   * All metrics, sorted by name. A running actor that does not answer in time counts with its last answer. `silent` is called with the
   * number of actors that did not answer, before the supervisor's own metrics are read, so that it may set one of those.
   */
  async collect(silent: (actors: number) => void): Promise<MetricFamily[]> {
    const answers = await this.#supervisor.askAll<ActorMetrics>('*', 'metrics')
    for (const { stats, incarnation, families } of answers)
      this.#ledger.take(stats.name, { incarnation, families: [...families, ...statsFamilies(stats)] })
    silent(this.#supervisor.states().length - answers.length)
    this.#ledger.take('', { incarnation: '', families: this.#own.collect() })
    const running = new Set(['', ...this.#supervisor.states().flatMap(({ name, state }) => (state === 'running' ? name : []))])
    const families = this.#ledger.merged((actor) => running.has(actor))
    return this.#prefix === '' ? families : families.map((family) => ({ ...family, name: this.#prefixed(family.name) })).sort(byName)
  }

  #prefixed(name: string): string {
    return name.startsWith(this.#prefix) ? name : this.#prefix + name
  }
}

const byName = (one: MetricFamily, other: MetricFamily): number => (one.name < other.name ? -1 : 1)

/** Metrics of the process as a whole, under the names that Prometheus clients use. */
function processMetrics(registry: Registry): void {
  const registers = [registry]
  new Gauge({ name: 'process_start_time_seconds', help: 'Unix time at which the process started', registers }).set(
    wallClockMs() / 1000 - process.uptime(),
  )
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'resident memory',
    registers,
    collect() {
      this.set(process.memoryUsage.rss())
    },
  })
  const cpu = new Counter({ name: 'process_cpu_seconds_total', help: 'CPU time of all threads' })
  registry.add('process_cpu_seconds_total', {
    family() {
      const { user, system } = process.cpuUsage()
      cpu.reset()
      cpu.inc((user + system) / 1e6)
      return cpu.family()
    },
  })
}

/** The statistics of one actor as metrics. */
function statsFamilies(stats: ActorStats): MetricFamily[] {
  const registry = new Registry()
  const declare = (name: string, help: string) => ({ name, help, labelNames: ['actor'] as const, registers: [registry] })
  const labels = { actor: stats.name }
  new Gauge(declare('actor_mailbox_depth', 'messages waiting in the mailbox of an actor')).set(labels, stats.depth)
  new Counter(declare('actor_messages_processed', 'messages that an actor has processed')).inc(labels, stats.processed)
  new Counter(declare('actor_messages_coalesced', 'messages replaced by newer ones before they were processed')).inc(labels, stats.coalesced)
  new Gauge(declare('actor_event_loop_utilisation', 'share of time that the event loop of an actor was busy')).set(labels, stats.utilisation)
  new Gauge(declare('actor_heap_bytes', 'JavaScript heap in use in the thread of an actor')).set(labels, stats.heapBytes)
  new Counter(declare('actor_cpu_seconds', 'CPU time of the thread of an actor')).inc(labels, stats.cpuSeconds)
  return registry.collect()
}
