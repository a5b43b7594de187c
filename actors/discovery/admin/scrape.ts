/** The metrics page: those of the main thread and of every actor in one. */
import type { ActorStats } from '../../../protocols/messages/envelope.ts'
import type { ActorMetrics, MetricFamily } from '../../../protocols/messages/metrics.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { expositionType, MetricsLedger, writeExposition } from '../../runtime/exposition.ts'
import { Counter, Gauge, Registry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'

/** Media type of the metrics page. */
export const scrapeType = expositionType

/** Asks all actors for their metrics and merges them. */
export class Scraper {
  readonly #supervisor: Supervisor
  readonly #own: Registry
  readonly #ledger = new MetricsLedger()
  readonly #scrapes: Counter
  readonly #failures: Counter<'type'>
  #running: Promise<string> | undefined

  /** `own` are the metrics of the main thread. */
  constructor(supervisor: Supervisor, own: Registry) {
    this.#supervisor = supervisor
    this.#own = own
    this.#scrapes = new Counter({ name: 'scrapes_total', help: 'total scrapes', registers: [own] })
    this.#failures = new Counter({
      name: 'scrape_failures_total',
      help: 'failed scrapes: actors that did not answer',
      labelNames: ['type'],
      registers: [own],
    })
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

  /** The page. Who asks while it is being made gets the same one. */
  scrape(): Promise<string> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #scrape(): Promise<string> {
    this.#scrapes.inc()
    const answers = await this.#supervisor.askAll<ActorMetrics>('*', 'metrics')
    for (const { stats, incarnation, families } of answers)
      this.#ledger.take(stats.name, { incarnation, families: [...families, ...statsFamilies(stats)] })
    const silent = this.#supervisor.states().length - answers.length
    if (silent > 0) this.#failures.inc({ type: 'actor' }, silent)
    this.#ledger.take('', { incarnation: '', families: this.#own.collect() })
    const running = new Set(['', ...this.#supervisor.states().flatMap(({ name, state }) => (state === 'running' ? name : []))])
    return writeExposition(this.#ledger.merged((actor) => running.has(actor)))
  }
}

/** The process as a whole, under the names that clients of Prometheus have for it. */
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

/** What every actor tells of itself, as metrics. */
function statsFamilies(stats: ActorStats): MetricFamily[] {
  const registry = new Registry()
  const declare = (name: string, help: string) => ({ name, help, labelNames: ['actor'] as const, registers: [registry] })
  const labels = { actor: stats.name }
  new Gauge(declare('actor_mailbox_depth', 'messages that wait in the mailbox of an actor')).set(labels, stats.depth)
  new Counter(declare('actor_messages_processed', 'messages an actor has worked off')).inc(labels, stats.processed)
  new Counter(declare('actor_messages_coalesced', 'messages replaced by newer ones before they were worked off')).inc(labels, stats.coalesced)
  new Gauge(declare('actor_event_loop_utilisation', 'share of time the event loop of an actor was busy')).set(labels, stats.utilisation)
  new Gauge(declare('actor_heap_bytes', 'JavaScript heap in use in the thread of an actor')).set(labels, stats.heapBytes)
  new Counter(declare('actor_cpu_seconds', 'CPU time of the thread of an actor')).inc(labels, stats.cpuSeconds)
  return registry.collect()
}
