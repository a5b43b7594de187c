/**
 * The other clusters of the mesh, on the main thread: follows the remote secrets of the own cluster, starts an actor for each cluster that they
 * name and removes it with its key (docs/operation.md, J1 to J7), and answers how such a cluster is reached and what it says of tokens.
 */
import { createSecureContext } from 'node:tls'
import type { TokenReviewQuestion, TokenVerdict } from '../../../protocols/messages/identity.ts'
import { heardNote, unsyncedNote } from '../../../protocols/messages/notes.ts'
import type { ClusterAccess, RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import { certificatesOf } from '../../../src/identity/pem.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { remoteSecretLabels } from '../../../src/names/secret-names.ts'
import {
  cutRemoteSecret,
  type FaultyKey,
  keyLine,
  type RemoteCluster,
  type RemoteSecret,
  RemoteSecrets,
} from '../../../src/orchestrator/remote-secrets.ts'
import { labelled } from '../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../src/orchestrator/responses.ts'
import { described } from '../../../src/policy/signed-token.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { after, pause, type Timer } from '../../runtime/timers.ts'
import type { LateActor } from '../../runtime/wiring.ts'
import { remoteSources } from '../given/sources.ts'
import { ClusterApi, type RequestSettings } from './cluster-api.ts'
import { clusterUid } from './cluster-uid.ts'
import type { FollowedResource, ResourceEvents } from './followed-resource.ts'
import { HeldElsewhere } from './held-elsewhere.ts'
import { clusterReviews, type ReviewMetrics, remoteReviewBytes, reviewMs, TokenReviews } from './token-reviews.ts'

/**
 * How long a cluster stays whose key is gone, how long its actor may take to end, how often it is read again, and how long texts of Secrets are read
 * at a time, in milliseconds. A Secret may be replaced by deleting it. After `identifyMs` a cluster is asked again who it is.
 */
const times = { lingerMs: 1000, drainMs: 5000, restartMs: 15_000, turnMs: 5, identifyMs: 15_000 }

/** What is said of a cluster for which nothing waits any more. */
const late = 'it has not been read whole yet; the service goes on without it'

/** What the remote clusters are followed with. */
export interface RemoteClustersParts {
  /** The namespace of the remote secrets. */
  readonly namespace: string
  /** The id of the own cluster. */
  readonly own: string
  readonly api: ClusterApi
  /** How long the first push waits for a cluster, and for one that other replicas have, in milliseconds. */
  readonly timeoutMs: number
  readonly heldMs: number
  /** Asks the other replicas for the clusters that those of them have that are ready; absent: there are none. */
  readonly heldElsewhere?: (() => Promise<readonly string[]>) | undefined
  readonly settings: RequestSettings
  readonly log: Logger
  readonly metrics: MetricRegistry
  readonly reviewMetrics: ReviewMetrics
  /** The interval of comparisons with lists, in milliseconds; 0: there are none. */
  readonly auditMs: number
  /** How long texts of Secrets are read at a time, in milliseconds, if not 5. */
  readonly turnMs?: number
  /** Reads what a cluster is known by, if not {@link clusterUid}. */
  readonly uidOf?: (api: ClusterApi) => Promise<string | undefined>
}

/** A cluster whose actor runs. */
interface Running {
  remote: RemoteCluster
  readonly actor: string
  readonly api: ClusterApi
  reviews: TokenReviews
  readonly since: number
  /** When its actor was last started, in monotonic milliseconds. */
  startedAt: number
  /** Whether a push queue has had its whole state. */
  wasHeard: boolean
  /** Whether it was told that nothing waits for it any more. */
  isLate: boolean
  restart: Timer | undefined
  linger: Timer | undefined
}

/** Follows the remote secrets. */
export class RemoteClusters {
  readonly answers: BoundedAnswers<'remoteAccess' | 'isNamed'> = {
    remoteAccess: (cluster) => this.#access(cluster),
    isNamed: (cluster) => this.#isNamed(cluster),
  }
  readonly #parts: RemoteClustersParts
  readonly #secrets: RemoteSecrets
  /** The Secrets as each label tells of them: one with both is told twice. */
  readonly #byLabel = new Map(remoteSecretLabels.map((label) => [label, new Map<string, RemoteSecret>()]))
  /** The Secrets that have changed and are to be read, the one that is being read, and the next turn. */
  readonly #changed = new Set<string>()
  #reading: Generator<void, void> | undefined
  #turn: Timer | undefined
  readonly #follows: FollowedResource<RemoteSecret>[] = []
  readonly #listed = new Set<string>()
  /** Why Secrets cannot be read, by label, and whether the role forbids it. */
  readonly #troubles = new Map<string, { readonly reason: string; readonly isForbidden: boolean }>()
  readonly #running = new Map<string, Running>()
  /** The actors that are being removed. */
  readonly #leaving = new Set<string>()
  /** What clusters are known by, by their ids, as long as they are reached by the same text; of the own one without a text. */
  readonly #uids = new Map<string, { readonly text: string; readonly uid: string }>()
  #faults: readonly string[] = []
  #faulty: readonly FaultyKey[] = []
  readonly #faultLines = new LineBounds()
  readonly #timeouts: Counter
  #supervisor: Supervisor | undefined
  #actorOf: ((cluster: string) => LateActor) | undefined
  /** The clusters that other replicas have. */
  readonly #elsewhere: HeldElsewhere
  #awaited: readonly string[] = []
  /** The start of the push queue that waits, in Unix milliseconds, and since when that was known, in monotonic ones. */
  #queue = { startedAt: 0, since: 0 }
  #wake: Timer | undefined
  #isClosed = false

  constructor(parts: RemoteClustersParts) {
    this.#parts = parts
    this.#secrets = new RemoteSecrets(parts.own, unusable)
    this.#elsewhere = new HeldElsewhere(parts.heldElsewhere, () => this.#tellAwaited())
    this.#timeouts = new Counter({
      name: 'remote_cluster_sync_timeouts_total',
      help: 'remote clusters that had not been read whole within PILOT_REMOTE_CLUSTER_TIMEOUT, so that the service went on without them',
      registers: [parts.metrics],
    })
  }

  /** Follows the Secrets from now on. `actorOf` returns the actor for a cluster. */
  follow(supervisor: Supervisor, actorOf: (cluster: string) => LateActor): void {
    this.#supervisor = supervisor
    this.#actorOf = actorOf
    for (const label of remoteSecretLabels) {
      const follow = this.#parts.api.followed(labelled(this.#parts.namespace, label), this.#eventsOf(label))
      this.#follows.push(follow)
      follow.start(this.#parts.auditMs)
    }
    void this.#watch(supervisor)
    void this.#identify(this.#parts.own, '', this.#parts.api)
  }

  /** What is wrong, for the body of `/ready`. None of it keeps the service from being ready. */
  get troubles(): readonly string[] {
    return [...this.#faults, ...new Set([...this.#troubles.values()].map(({ reason }) => reason)), ...this.#lateLines(), ...this.#awaitedLines()]
  }

  /** The keys of remote secrets, and what became of each; of those with faults the first ones. */
  get keys(): readonly RemoteKey[] {
    const running = new Map<string, RemoteKey>()
    for (const { remote, actor, isLate, wasHeard } of this.#running.values())
      running.set(`${remote.secret} ${remote.id}`, {
        ...{ name: remote.id, secret: remote.secret, actor, trouble: isLate && !wasHeard ? late : '' },
        isHeld: wasHeard,
      })
    const others: RemoteKey[] = []
    for (const { id, secret, reason } of this.#faulty) {
      const known = running.get(`${secret} ${id}`)
      if (known) running.set(`${secret} ${id}`, { ...known, trouble: reason })
      else others.push({ name: id, secret, actor: '', trouble: reason, isHeld: false })
    }
    const unread = [...new Set([...this.#troubles.values()].map(({ reason }) => reason))]
    return [...running.values(), ...others, ...unread.map((trouble) => ({ name: '', secret: '', actor: '', trouble, isHeld: false }))]
  }

  /** Decides on a token of another cluster by the API server of that cluster. */
  review(question: TokenReviewQuestion, asking: Asking = patient): Promise<TokenVerdict> {
    const { cluster = '' } = question
    const running = this.#running.get(cluster)
    if (running) return running.reviews.answers.reviewToken(question, asking)
    const unavailable = !this.#isListed && !this.#isForbidden
    const reason = unavailable ? 'which clusters there are is not known yet' : 'no remote secret that can be read names it'
    return Promise.resolve({ refused: `the call is for the cluster ${described(cluster)} (metadata clusterid): ${reason}`, unavailable })
  }

  /** The calls to the API server of another cluster; undefined where no remote secret names it. */
  apiOf(cluster: string): ClusterApi | undefined {
    return this.#running.get(cluster)?.api
  }

  close(): void {
    this.#isClosed = true
    this.#wake?.cancel()
    this.#turn?.cancel()
    for (const follow of this.#follows) follow.close()
    for (const { api, restart, linger } of this.#running.values()) {
      restart?.cancel()
      linger?.cancel()
      api.close()
    }
  }

  get #log() {
    return this.#parts.log('secretcontroller')
  }

  /** Whether all Secrets have been listed and read. */
  get #isListed(): boolean {
    return !this.#turn && remoteSecretLabels.every((label) => this.#listed.has(label))
  }

  /** Whether the role does not permit to read the Secrets. */
  get #isForbidden(): boolean {
    return [...this.#troubles.values()].some(({ isForbidden }) => isForbidden)
  }

  #access(cluster: string): Promise<ClusterAccess> {
    const running = this.#running.get(cluster)
    return running ? Promise.resolve(running.remote.access) : Promise.reject(new Error(`no remote secret names the cluster ${cluster}`))
  }

  /** What cannot be read may name the cluster. */
  #isNamed(cluster: string): Promise<boolean> {
    const isNamed = this.#running.has(cluster)
    return isNamed || this.#isListed ? Promise.resolve(isNamed) : Promise.reject(new Error('which clusters there are is not known yet'))
  }

  #eventsOf(label: string): ResourceEvents<RemoteSecret> {
    const secrets = this.#byLabel.get(label) ?? new Map<string, RemoteSecret>()
    return {
      read: (value) => {
        const known = keyAndVersion(value)
        return known && { key: known[0], version: known[1], object: cutRemoteSecret(value) }
      },
      set: (key, secret) => {
        secrets.set(key, secret)
        this.#changed.add(key)
      },
      same: () => {},
      remove: (key) => {
        secrets.delete(key)
        this.#changed.add(key)
      },
      complete: () => {
        this.#listed.add(label)
        this.#settled()
      },
      failed: (verb, refusal, reason) => this.#failed(label, verb, refusal?.code, reason),
      recovered: () => this.#recovered(label),
      audited: () => {},
      auditFailed: () => {},
      settled: () => this.#settled(),
    }
  }

  #failed(label: string, verb: string, code: number | undefined, reason: string): void {
    const { namespace } = this.#parts
    const isForbidden = code === 403
    const why = isForbidden
      ? `the role of this service account does not permit "${verb}" of "secrets" in the namespace ${namespace}`
      : `${verb} failed`
    const consequence = this.#listed.has(label)
      ? 'the clusters that are known stay'
      : isForbidden
        ? 'the service goes on without other clusters: it has none of their services and endpoints, and refuses their proxies'
        : 'which other clusters there are is not known, and waited for'
    const line = `remote secrets of the namespace ${namespace} cannot be read: ${why}: ${reason}; ${consequence}`
    if (this.#troubles.get(label)?.reason !== line && ![...this.#troubles.values()].some((each) => each.reason === line)) this.#log.error(line)
    this.#troubles.set(label, { reason: line, isForbidden })
    this.#judge()
  }

  #recovered(label: string): void {
    if (this.#troubles.delete(label) && this.#troubles.size === 0)
      this.#log.info(`remote secrets of the namespace ${this.#parts.namespace} are read again`)
  }

  /** What was told belongs together: starts, changes and removes clusters. */
  #settled(): void {
    if (this.#isClosed || !this.#isListed || !this.#haveReadAll()) return
    const { clusters: named, faults, faulty } = this.#secrets.result()
    const twins = this.#twins(named)
    const clusters = new Map([...named].filter(([id]) => !twins.has(id)))
    this.#faulty = [...faulty, ...twins.values()]
    this.#tellFaults([...faults, ...[...twins.values()].map(keyLine)])
    for (const [id, running] of this.#running) {
      const remote = clusters.get(id)
      if (remote) this.#keep(running, remote)
      else if (twins.has(id)) this.#stop(id, 'it is followed by another id')
      else running.linger ??= after(times.lingerMs, () => this.#stop(id, 'no remote secret names it any more')).unref()
    }
    for (const remote of clusters.values()) if (!this.#running.has(remote.id) && !this.#leaving.has(remote.id)) this.#start(remote)
    this.#judge()
  }

  /**
   * What is said of clusters that are followed by another id already: their endpoints would count twice. The id that is followed longest stays, whichever
   * Secret names another one later. The authorities have to be the same too: a server that claims to be another cluster must not keep that out.
   */
  #twins(named: ReadonlyMap<string, RemoteCluster>): ReadonlyMap<string, FaultyKey> {
    const own = this.#uids.get(this.#parts.own)?.uid
    const uidOf = ({ id, text }: RemoteCluster) => {
      const known = this.#uids.get(id)
      return known?.text === text ? known.uid : undefined
    }
    const keyOf = (remote: RemoteCluster) => `${uidOf(remote)} ${remote.access.ca?.trim() ?? ''}`
    const byKey = new Map<string, string>()
    for (const { remote } of this.#running.values()) if (!named.has(remote.id)) byKey.set(keyOf(remote), remote.id)
    const twins = new Map<string, FaultyKey>()
    const running = [...this.#running.keys()].flatMap((id) => named.get(id) ?? [])
    for (const remote of new Set([...running, ...named.values()])) {
      const uid = uidOf(remote)
      if (uid === undefined) continue
      const other = uid === own ? this.#parts.own : byKey.get(keyOf(remote))
      if (other === undefined) byKey.set(keyOf(remote), remote.id)
      else {
        const reason = `it is the cluster ${other}, by the uid of its namespace kube-system; it is not followed by a second id`
        twins.set(remote.id, { id: remote.id, secret: remote.secret, reason })
      }
    }
    return twins
  }

  /** Finds out what a cluster is known by, as long as it is reached by the same text. */
  async #identify(id: string, text: string, api: ClusterApi): Promise<void> {
    const isCurrent = () => !this.#isClosed && (id === this.#parts.own || this.#running.get(id)?.remote.text === text)
    while (isCurrent()) {
      try {
        const uid = await (this.#parts.uidOf ?? clusterUid)(api)
        if (uid !== undefined && isCurrent()) this.#identified(id, { text, uid })
        return this.#settled()
      } catch (error) {
        this.#log.debug(`what the cluster ${id} is known by cannot be read: ${(error as Error).message}`)
        await pause(times.identifyMs)
      }
    }
  }

  /** Notes what a cluster is known by. Where it is another one than before, the former one vouches for nobody any more (docs/identity.md, I12). */
  #identified(id: string, known: { readonly text: string; readonly uid: string }): void {
    const before = this.#uids.get(id)?.uid
    this.#uids.set(id, known)
    if (before === undefined || before === known.uid) return
    this.#log.warn(
      `the cluster ${id} is another one than before: the uid of its namespace kube-system is ${known.uid}, it was ${before}; the streams of the proxies of the former one end`,
    )
    void this.#supervisor?.askAll('xds-writer', 'clusterReplaced', id)
  }

  /** Reads the Secrets that changed, for a while; then the rest in further turns, which end with {@link #settled}. Returns whether all are read. */
  #haveReadAll(): boolean {
    const until = monotonicMs() + (this.#parts.turnMs ?? times.turnMs)
    for (;;) {
      const [key] = this.#changed
      if (!this.#reading && key === undefined) return true
      if (!this.#reading && key !== undefined) {
        this.#changed.delete(key)
        const [told] = [...this.#byLabel.values()].flatMap((each) => each.get(key) ?? [])
        this.#reading = this.#secrets.steps(key, told)
      }
      if (this.#reading?.next().done) this.#reading = undefined
      else if (monotonicMs() >= until) {
        this.#turn = after(0, () => {
          this.#turn = undefined
          this.#settled()
        }).unref()
        return false
      }
    }
  }

  /** Logs the faults that are others than before. Whoever changes a Secret all the time must not fill the log. */
  #tellFaults(faults: readonly string[]): void {
    const before = new Set(this.#faults)
    this.#faults = faults
    for (const fault of faults) {
      const line = before.has(fault) ? undefined : this.#faultLines.bounded(fault.slice(0, fault.indexOf(':')), fault, monotonicMs())
      if (line !== undefined) this.#log.error(line)
    }
  }

  #start(remote: RemoteCluster): void {
    const actor = this.#actorOf?.(remote.id)
    if (!actor) return
    const { log, settings } = this.#parts
    const api = new ClusterApi({ access: () => this.#access(remote.id) }, settings, reviewMs, remoteReviewBytes)
    api.logTo(log('klog'))
    const reviews = this.#reviewsOf(remote.id, api)
    const now = monotonicMs()
    this.#running.set(remote.id, {
      ...{ remote, api, reviews, actor: actor.spec.name, since: now, startedAt: now },
      ...{ wasHeard: false, isLate: false, restart: undefined, linger: undefined },
    })
    this.#log.info(`the cluster ${remote.id} is followed (Secret ${remote.secret}, ${remote.access.server})`)
    this.#supervisor?.start(actor.spec, actor.peers)
    void this.#identify(remote.id, remote.text, api)
  }

  #reviewsOf(id: string, api: ClusterApi): TokenReviews {
    const { log, reviewMetrics } = this.#parts
    return new TokenReviews(clusterReviews(api), log, reviewMetrics, ` of the cluster ${id}`)
  }

  /** Goes on with a cluster. One that is reached otherwise is read again by another incarnation of its actor; its objects stay until then. */
  #keep(running: Running, remote: RemoteCluster): void {
    running.linger?.cancel()
    running.linger = undefined
    const isSame = running.remote.text === remote.text
    running.remote = remote
    if (isSame) return
    // Whoever changes the Secret all the time must not make the actor count as failing.
    const waitMs = Math.max(0, running.startedAt + (running.restart || running.startedAt > running.since ? times.restartMs : 0) - monotonicMs())
    running.restart ??= after(waitMs, () => {
      running.restart = undefined
      running.startedAt = monotonicMs()
      const { id, secret, access } = running.remote
      this.#log.info(`the connection to the cluster ${id} has changed (Secret ${secret}, ${access.server}): it is read again`)
      running.api.reconnect()
      // Its verdicts are of the server before.
      running.reviews = this.#reviewsOf(id, running.api)
      this.#supervisor?.restart(running.actor)
      void this.#identify(id, running.remote.text, running.api)
    }).unref()
  }

  #stop(id: string, reason: string): void {
    const running = this.#running.get(id)
    if (!running) return
    this.#running.delete(id)
    this.#leaving.add(id)
    running.restart?.cancel()
    running.api.close()
    this.#log.info(`the services and endpoints of the cluster ${id} are removed: ${reason}`)
    void this.#supervisor?.stop(running.actor, times.drainMs).then(() => {
      this.#leaving.delete(id)
      // It may have been named again meanwhile.
      this.#settled()
    })
    this.#judge()
  }

  async #watch(supervisor: Supervisor): Promise<void> {
    while (!this.#isClosed) {
      await supervisor.changed()
      this.#judge()
    }
  }

  /** Tells the push queue that its first push need not wait for other clusters any more, once that is so. */
  #judge(): void {
    const queue = this.#supervisor?.states().find(({ name }) => name === 'push-queue')
    if (this.#isClosed || queue?.state !== 'running') return
    const names = (note: string) => (queue.notes.get(note) as readonly string[] | undefined) ?? []
    const heard = new Set(names(heardNote))
    for (const running of this.#running.values()) running.wasHeard ||= heard.has(running.actor)
    if (!names(unsyncedNote).includes(remoteSources)) return
    if (this.#queue.startedAt !== queue.startedAt) this.#queue = { startedAt: queue.startedAt, since: monotonicMs() }
    if (!this.#isListed && !this.#isForbidden) return
    const missing = [...this.#running.values()].filter(({ actor }) => !heard.has(actor))
    const restMs = Math.max(0, ...missing.map((running) => this.#restMs(running)))
    this.#wake?.cancel()
    this.#wake = restMs > 0 ? after(restMs + 1, () => this.#judge()).unref() : undefined
    if (restMs > 0 || (missing.some((running) => this.#mayAwait(running)) && this.#elsewhere.asks())) return
    for (const running of missing) this.#gaveUp(running)
    this.#elsewhere.forget()
    this.#supervisor?.ask('push-queue', 'waitNoLonger', remoteSources).catch((error: Error) => this.#log.debug(error.message))
  }

  /**
   * How long the first push still waits for a cluster, or until the other replicas are asked again whether they have it. One that could not be read
   * before is not waited for again.
   */
  #restMs(running: Running): number {
    const until = this.#sinceOf(running) + this.#parts.timeoutMs
    return (this.#isAwaited(running) ? Math.max(until, Math.min(this.#elsewhere.until, this.#heldUntil(running))) : until) - monotonicMs()
  }

  #sinceOf({ since, wasHeard }: Running): number {
    return wasHeard ? Math.max(since, this.#queue.since) : since
  }

  /** Until when the first push waits for a cluster that other replicas have. */
  #heldUntil(running: Running): number {
    return this.#sinceOf(running) + this.#parts.heldMs
  }

  /** Whether the first push may wait for a cluster because other replicas have it. */
  #mayAwait(running: Running): boolean {
    return !running.isLate && this.#heldUntil(running) > monotonicMs()
  }

  #isAwaited(running: Running): boolean {
    return this.#mayAwait(running) && this.#elsewhere.has(running.remote.id)
  }

  #gaveUp(running: Running): void {
    if (running.isLate) return
    running.isLate = true
    this.#timeouts.inc()
    const waitedMs = monotonicMs() - this.#sinceOf(running)
    const { heldMs, timeoutMs } = this.#parts
    const variable = heldMs > timeoutMs && waitedMs >= heldMs ? 'MESHD_HELD_CLUSTER_TIMEOUT' : 'PILOT_REMOTE_CLUSTER_TIMEOUT'
    this.#log.warn(
      `the cluster ${running.remote.id} was not read whole within ${Math.floor(waitedMs / 1000)} s (${variable}): the service goes on without it until it is`,
    )
  }

  /** The clusters that are waited for because other replicas have them. */
  #awaitedLines(): readonly string[] {
    const bound = `for ${this.#parts.heldMs / 1000} s at most (MESHD_HELD_CLUSTER_TIMEOUT)`
    return [...this.#running.values()].flatMap((running) =>
      !running.wasHeard && this.#isAwaited(running)
        ? `cluster ${running.remote.id} has not been read whole yet (Secret ${running.remote.secret}), and ready replicas have it: this one is not ready before it has, ${bound}`
        : [],
    )
  }

  /** Tells of clusters that are waited for from now on. */
  #tellAwaited(): void {
    const lines = this.#awaitedLines()
    for (const line of lines) if (!this.#awaited.includes(line)) this.#log.warn(line)
    this.#awaited = lines
    this.#judge()
  }

  #lateLines(): readonly string[] {
    const lateOnes = [...this.#running.values()].filter(({ isLate, wasHeard }) => isLate && !wasHeard)
    return lateOnes.map(({ remote }) => `cluster ${remote.id} has not been read whole yet (Secret ${remote.secret}); the service goes on without it`)
  }
}

/** Why certificates and keys of an access cannot be used; undefined if they can. */
function unusable({ ca, cert, key }: ClusterAccess): string | undefined {
  try {
    createSecureContext({ ca, cert, key })
  } catch {
    return 'its certificates or its key cannot be used: expected PEM, and a key that belongs to the certificate'
  }
  // OpenSSL takes authorities that it cannot read for none, and then trusts no server.
  try {
    if (ca !== undefined) certificatesOf(ca)
    return undefined
  } catch {
    return 'certificate-authority-data: one of its certificates cannot be read'
  }
}
