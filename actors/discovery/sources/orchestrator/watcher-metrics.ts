/** The metrics of the watcher of a cluster (docs/metrics.md). */
import type { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import { Counter, Gauge, gaugesOf, type MetricRegistry } from '../../../runtime/metrics.ts'

/** What metrics say of a followed kind: how long ago the server was last heard of it, in milliseconds (undefined: never). */
interface HeardKind {
  readonly kind: string
  readonly age: number | undefined
  readonly isStale: boolean
}

/** The kinds that the metric of events names otherwise, as the specification has it. */
const types: ReadonlyMap<string, string> = new Map([
  ['Namespace', 'Namespaces'],
  ['Service', 'Services'],
  ['Node', 'Nodes'],
  ['Pod', 'Pods'],
])

/** Counts what the watcher of a cluster sees. */
export class WatcherMetrics {
  /** Changes of objects of the configuration are counted where these are defined. */
  readonly #events: Counter<'type' | 'event'> | undefined
  readonly #read: Counter
  readonly #unread: Counter
  readonly #failures: Counter<'kind'>
  readonly #audits: Counter<'kind'>
  readonly #auditFailures: Counter<'kind'>
  readonly #repairs: Counter<'kind'>
  readonly #withoutPods: Counter | undefined
  /** The label of a kind. */
  readonly #labelOf: (kind: string) => { readonly kind: string }
  /** What counts an event, by kind and event. */
  readonly #counts = new Map<string, () => void>()
  readonly #cluster: ClusterRegistry | undefined
  /** The endpoints without pods that have been counted. */
  #counted = 0

  /**
   * `cluster`: undefined where no services are followed. `of`: what follows the kind in labels, since what is said of a kind is not added up over clusters; empty
   * for the own cluster.
   */
  constructor(registry: MetricRegistry, followed: () => readonly HeardKind[], cluster: ClusterRegistry | undefined, of = '') {
    const labelOf = (kind: string) => ({ kind: `${kind}${of}` })
    this.#labelOf = labelOf
    const registers = [registry]
    const labelNames = ['kind'] as const
    this.#events =
      cluster &&
      new Counter({
        name: 'pilot_orch_reg_events',
        help: 'changes of objects of the orchestrator',
        labelNames: ['type', 'event'] as const,
        registers,
      })
    this.#read = new Counter({ name: 'galley_source_orch_event_success_total', help: 'objects of the orchestrator that were read', registers })
    this.#unread = new Counter({ name: 'galley_source_orch_event_error_total', help: 'objects of the orchestrator with faults', registers })
    this.#failures = new Counter({
      name: 'pilot_orch_watch_failures_total',
      help: 'failed attempts to list or watch objects of the orchestrator',
      labelNames,
      isOwn: true,
      registers,
    })
    this.#audits = new Counter({
      name: 'pilot_orch_audits_total',
      help: 'comparisons of what is known with lists of the API server',
      labelNames,
      isOwn: true,
      registers,
    })
    this.#auditFailures = new Counter({
      name: 'pilot_orch_audit_failures_total',
      help: 'comparisons that failed because no list could be read',
      labelNames,
      isOwn: true,
      registers,
    })
    this.#repairs = new Counter({
      name: 'pilot_orch_audit_repairs_total',
      help: 'objects of the orchestrator of which a watch had not told',
      labelNames,
      registers,
    })
    const gauge = gaugesOf(registry)
    this.#cluster = cluster
    if (cluster) {
      gauge('endpoint_no_pod', 'endpoints of the orchestrator whose pods are not known', () => cluster.awaitedPods)
      gauge('pilot_orch_endpoints_pending_pod', 'endpoints of the orchestrator that wait for their pods', () => cluster.awaitedPods)
    }
    this.#withoutPods =
      cluster && new Counter({ name: 'pilot_orch_endpoints_with_no_pods', help: 'endpoints that came while their pods were not known', registers })
    new Gauge({
      name: 'pilot_orch_watch_age_seconds',
      help: 'seconds since the API server was last heard of a kind',
      labelNames,
      registers,
      collect() {
        const oldest = new Map<string, number>()
        for (const { kind, age } of followed()) if (age !== undefined) oldest.set(kind, Math.max(age, oldest.get(kind) ?? 0))
        for (const [kind, age] of oldest) this.set(labelOf(kind), age / 1000)
      },
    })
    new Gauge({
      name: 'pilot_orch_watch_stale',
      help: 'whether the API server has sent nothing about a kind for longer than PILOT_ORCH_STALE_AFTER',
      labelNames,
      registers,
      collect() {
        const kinds = followed()
        for (const { kind } of kinds) this.set(labelOf(kind), kinds.some((each) => each.kind === kind && each.isStale) ? 1 : 0)
      },
    })
  }

  changed(kind: string, event: 'add' | 'update' | 'updatesame' | 'delete'): void {
    if (!this.#events) return
    const at = `${kind} ${event}`
    const known = this.#counts.get(at)
    const count = known ?? this.#events.series({ type: types.get(kind) ?? kind, event })
    if (!known) this.#counts.set(at, count)
    count()
  }

  read(isWhole: boolean): void {
    if (isWhole) this.#read.inc()
    else this.#unread.inc()
  }

  /** What is known of endpoints and pods may have changed. */
  settled(): void {
    const { awaitedEver = 0 } = this.#cluster ?? {}
    if (awaitedEver === this.#counted) return
    this.#withoutPods?.inc(awaitedEver - this.#counted)
    this.#counted = awaitedEver
  }

  failed(kind: string): void {
    this.#failures.inc(this.#labelOf(kind))
  }

  auditFailed(kind: string): void {
    this.#auditFailures.inc(this.#labelOf(kind))
  }

  audited(kind: string, missed: number): void {
    this.#audits.inc(this.#labelOf(kind))
    this.#repairs.inc(this.#labelOf(kind), missed)
  }
}
