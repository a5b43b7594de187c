/** Which other clusters the first push waits for, and how long (docs/operation.md, J5). */
import { heardNote, unsyncedNote } from '../../../protocols/messages/notes.ts'
import type { RemoteCluster } from '../../../src/orchestrator/remote-secrets.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { remoteSources } from '../given/sources.ts'
import { type AskHeld, HeldElsewhere } from './held-elsewhere.ts'

/** A cluster that may be waited for. */
export interface AwaitedCluster {
  readonly remote: RemoteCluster
  readonly actor: string
  /** Since when it is followed, in monotonic milliseconds. */
  readonly since: number
  /** Whether a push queue has had its whole state. */
  wasHeard: boolean
  /** Whether it was told that nothing waits for it any more. */
  isLate: boolean
}

/** Clusters that this replica may lack, because it cannot read what names them. */
export interface UnreadClusters {
  readonly why: string
  readonly mayBe: (id: string) => boolean
}

/** What clusters are waited for with. */
export interface AwaitedClustersParts {
  /** How long the first push waits for a cluster, and for one that other replicas have, in milliseconds. */
  readonly timeoutMs: number
  readonly heldMs: number
  /** Asks the other replicas for the clusters that those of them have that are ready; absent: there are none. */
  readonly heldElsewhere?: AskHeld | undefined
  readonly log: ScopedLogger
  readonly metrics: MetricRegistry
  /** The clusters that are followed. */
  readonly followed: () => readonly AwaitedCluster[]
  /** Whether it is known which clusters there are, as far as the role permits. */
  readonly isKnown: () => boolean
  /** Clusters that are not followed, and that other replicas may have. */
  readonly unread: () => UnreadClusters | undefined
}

/** The clusters that are waited for. */
export class AwaitedClusters {
  readonly #parts: AwaitedClustersParts
  readonly #timeouts: Counter
  /** The clusters that other replicas have, and what was told of those that are waited for. */
  readonly #elsewhere: HeldElsewhere
  #told: readonly string[] = []
  #supervisor: Supervisor | undefined
  /** The start of the push queue that waits, in Unix milliseconds, and since when that was known, in monotonic ones. */
  #queue = { startedAt: 0, since: 0 }
  #wake: Timer | undefined
  /** Whether the service went on without clusters that it cannot read. */
  #wentOnUnread = false
  #isClosed = false

  constructor(parts: AwaitedClustersParts) {
    this.#parts = parts
    this.#elsewhere = new HeldElsewhere(parts.heldElsewhere, () => this.#tell())
    this.#timeouts = new Counter({
      name: 'remote_cluster_sync_timeouts_total',
      help: 'remote clusters that had not been read whole within PILOT_REMOTE_CLUSTER_TIMEOUT, so that the service went on without them',
      registers: [parts.metrics],
    })
  }

  /** Judges from now on, whenever an actor has changed. */
  async watch(supervisor: Supervisor): Promise<void> {
    this.#supervisor = supervisor
    while (!this.#isClosed) {
      await supervisor.changed()
      this.judge()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#wake?.cancel()
  }

  /** The clusters that the service goes on without, and those that it is not ready for because other replicas have them. */
  get lines(): readonly string[] {
    const late = this.#parts
      .followed()
      .flatMap(({ isLate, wasHeard, remote }) =>
        isLate && !wasHeard ? `cluster ${remote.id} has not been read whole yet (Secret ${remote.secret}); the service goes on without it` : [],
      )
    return [...late, ...this.#waiting()]
  }

  /** Tells the push queue that its first push need not wait for other clusters any more, once that is so. */
  judge(): void {
    const queue = this.#supervisor?.states().find(({ name }) => name === 'push-queue')
    if (this.#isClosed || queue?.state !== 'running') return
    const names = (note: string) => (queue.notes.get(note) as readonly string[] | undefined) ?? []
    const heard = new Set(names(heardNote))
    const followed = this.#parts.followed()
    for (const cluster of followed) cluster.wasHeard ||= heard.has(cluster.actor)
    if (!names(unsyncedNote).includes(remoteSources)) return
    if (this.#queue.startedAt !== queue.startedAt) this.#queue = { startedAt: queue.startedAt, since: monotonicMs() }
    if (!this.#parts.isKnown()) return
    const missing = followed.filter(({ actor }) => !heard.has(actor))
    const restMs = Math.max(0, ...missing.map((cluster) => this.#restMs(cluster)), this.#unreadRestMs())
    this.#wake?.cancel()
    this.#wake = restMs > 0 ? after(restMs + 1, () => this.judge()).unref() : undefined
    const mayBeHeld = this.#mayLack() || missing.some((cluster) => this.#mayBeHeld(cluster))
    if (restMs > 0 || (mayBeHeld && this.#elsewhere.asks())) return
    for (const cluster of missing) this.#giveUp(cluster)
    this.#giveUpUnread()
    this.#elsewhere.forget()
    this.#supervisor?.ask('push-queue', 'waitNoLonger', remoteSources).catch((error: Error) => this.#parts.log.debug(error.message))
  }

  /**
   * How long the first push still waits for a cluster, or until the other replicas are asked again whether they have it. One that could not be read
   * before is not waited for again.
   */
  #restMs(cluster: AwaitedCluster): number {
    const until = this.#sinceOf(cluster) + this.#parts.timeoutMs
    return (this.#isHeld(cluster) ? Math.max(until, Math.min(this.#elsewhere.until, this.#heldUntil(cluster))) : until) - monotonicMs()
  }

  #sinceOf({ since, wasHeard }: AwaitedCluster): number {
    return wasHeard ? Math.max(since, this.#queue.since) : since
  }

  /** Until when the first push waits for a cluster that other replicas have. */
  #heldUntil(cluster: AwaitedCluster): number {
    return this.#sinceOf(cluster) + this.#parts.heldMs
  }

  /** Whether the first push may wait for a cluster because other replicas have it. */
  #mayBeHeld(cluster: AwaitedCluster): boolean {
    return !cluster.isLate && this.#heldUntil(cluster) > monotonicMs()
  }

  #isHeld(cluster: AwaitedCluster): boolean {
    return this.#mayBeHeld(cluster) && this.#elsewhere.has(cluster.remote.id) !== 'no'
  }

  /** Until when the first push waits for clusters that other replicas have and this one cannot read. */
  get #unreadUntil(): number {
    return this.#queue.since + this.#parts.heldMs
  }

  /** Whether the first push may wait for clusters that this replica cannot read. */
  #mayLack(): boolean {
    return !this.#wentOnUnread && this.#parts.unread() !== undefined && this.#unreadUntil > monotonicMs()
  }

  /** The clusters that ready replicas have and this one cannot read, and whether replicas that have not answered may have others. */
  #lacking(): { readonly ids: readonly string[]; readonly mayBeMore: boolean } {
    const unread = this.#parts.unread()
    if (!unread || this.#wentOnUnread) return { ids: [], mayBeMore: false }
    const followed = new Set(this.#parts.followed().map(({ remote }) => remote.id))
    const ids = this.#elsewhere.ids.filter((id) => !followed.has(id) && unread.mayBe(id)).sort()
    return { ids, mayBeMore: !this.#elsewhere.isWhole }
  }

  /** How long the first push still waits for those, or until the other replicas are asked again. */
  #unreadRestMs(): number {
    const { ids, mayBeMore } = this.#lacking()
    return ids.length > 0 || mayBeMore ? Math.min(this.#elsewhere.until, this.#unreadUntil) - monotonicMs() : 0
  }

  #giveUpUnread(): void {
    const unread = this.#parts.unread()
    if (!unread || this.#wentOnUnread) return
    const { ids, mayBeMore } = this.#lacking()
    this.#wentOnUnread = true
    if (ids.length === 0 && !mayBeMore) return
    this.#timeouts.inc()
    const who = ids.length > 0 ? `ready replicas have the clusters ${ids.join(', ')}` : 'replicas that have not answered may have other clusters'
    this.#parts.log.warn(
      `${who}, which this one cannot read, since ${unread.why}: after ${this.#parts.heldMs / 1000} s (MESHD_HELD_CLUSTER_TIMEOUT) the service goes on without them`,
    )
  }

  #giveUp(cluster: AwaitedCluster): void {
    if (cluster.isLate) return
    cluster.isLate = true
    this.#timeouts.inc()
    const waitedMs = monotonicMs() - this.#sinceOf(cluster)
    const { heldMs, timeoutMs } = this.#parts
    const variable = heldMs > timeoutMs && waitedMs >= heldMs ? 'MESHD_HELD_CLUSTER_TIMEOUT' : 'PILOT_REMOTE_CLUSTER_TIMEOUT'
    this.#parts.log.warn(
      `the cluster ${cluster.remote.id} was not read whole within ${Math.floor(waitedMs / 1000)} s (${variable}): the service goes on without it until it is`,
    )
  }

  /** The clusters that are waited for because other replicas have them, or may have them. */
  #waiting(): readonly string[] {
    const waits = `this one is not ready before it has, for ${this.#parts.heldMs / 1000} s at most (MESHD_HELD_CLUSTER_TIMEOUT)`
    const followed = this.#parts.followed().flatMap((cluster) => {
      if (cluster.wasHeard || !this.#isHeld(cluster)) return []
      const { id, secret } = cluster.remote
      const why = this.#elsewhere.has(id) === 'yes' ? 'ready replicas have it' : 'replicas that have not answered may have it'
      return `cluster ${id} has not been read whole yet (Secret ${secret}), and ${why}: ${waits}`
    })
    const { why } = this.#parts.unread() ?? {}
    if (!this.#mayLack() || why === undefined) return followed
    const { ids, mayBeMore } = this.#lacking()
    const lacking = `this replica lacks clusters, since ${why}`
    if (ids.length > 0) return [...followed, `${lacking}, and ready replicas have ${ids.join(', ')}: ${waits}`]
    return mayBeMore ? [...followed, `${lacking}, and replicas that have not answered may have some: ${waits}`] : followed
  }

  /** Tells of clusters that are waited for from now on. */
  #tell(): void {
    const lines = this.#waiting()
    for (const line of lines) if (!this.#told.includes(line)) this.#parts.log.warn(line)
    this.#told = lines
    this.judge()
  }
}
