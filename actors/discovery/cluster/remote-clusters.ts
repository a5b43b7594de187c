/**
 * The other clusters of the mesh, on the main thread: follows the remote secrets of the own cluster, starts an actor for each cluster that they
 * name and removes it with its key (docs/operation.md, J1 to J7), and answers how such a cluster is reached and what it says of tokens.
 */
import type { TokenReviewQuestion, TokenVerdict } from '../../../protocols/messages/identity.ts'
import type { ClusterAccess, RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import { registriesNamespace } from '../../../src/cli/defaults.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { type FaultyKey, keyLine, type RemoteCluster } from '../../../src/orchestrator/remote-secrets.ts'
import { described } from '../../../src/policy/signed-token.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { LateActor } from '../../runtime/wiring.ts'
import { type AwaitedCluster, AwaitedClusters, type UnreadClusters } from './awaited-clusters.ts'
import { ClusterApi, type RequestSettings } from './cluster-api.ts'
import { ClusterIdentities, type UidOf } from './cluster-identities.ts'
import { FollowedSecrets } from './followed-secrets.ts'
import type { AskHeld } from './held-elsewhere.ts'
import { RegistriesNamespace } from './registries-namespace.ts'
import { clusterReviews, type ReviewMetrics, remoteReviewBytes, reviewMs, TokenReviews } from './token-reviews.ts'

/**
 * How long a cluster stays whose key is gone, how long its actor may take to end, and how often it is read again, in milliseconds. A Secret may be
 * replaced by deleting it.
 */
const times = { lingerMs: 1000, drainMs: 5000, restartMs: 15_000 }

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
  readonly heldElsewhere?: AskHeld | undefined
  readonly settings: RequestSettings
  readonly log: Logger
  readonly metrics: MetricRegistry
  readonly reviewMetrics: ReviewMetrics
  /** The interval of comparisons with lists, in milliseconds; 0: there are none. */
  readonly auditMs: number
  /** How long texts of Secrets are read at a time, in milliseconds, if not 5. */
  readonly turnMs?: number
  /** Reads what a cluster is known by, if not its API server says it. */
  readonly uidOf?: UidOf
}

/** A cluster whose actor runs. */
interface Running extends AwaitedCluster {
  remote: RemoteCluster
  readonly api: ClusterApi
  reviews: TokenReviews
  /** When its actor was last started, in monotonic milliseconds. */
  startedAt: number
  restart: Timer | undefined
  linger: Timer | undefined
}

/** The clusters that are followed. */
export class RemoteClusters {
  readonly answers: BoundedAnswers<'remoteAccess' | 'isNamed'> = {
    remoteAccess: (cluster) => this.#access(cluster),
    isNamed: (cluster) => this.#isNamed(cluster),
  }
  readonly #parts: RemoteClustersParts
  readonly #secrets: FollowedSecrets
  /** Absent where the flag does not name another namespace than its default. */
  readonly #namespace: RegistriesNamespace | undefined
  readonly #identities: ClusterIdentities
  readonly #awaited: AwaitedClusters
  /** By their ids, the one that is followed longest first. */
  readonly #running = new Map<string, Running>()
  /** The actors that are being removed. */
  readonly #leaving = new Set<string>()
  #faults: readonly string[] = []
  #faulty: readonly FaultyKey[] = []
  /** The clusters whose keys could never be used. */
  #unusable: ReadonlySet<string> = new Set()
  readonly #faultLines = new LineBounds()
  #supervisor: Supervisor | undefined
  #actorOf: ((cluster: string) => LateActor) | undefined
  #isClosed = false

  constructor(parts: RemoteClustersParts) {
    this.#parts = parts
    const { namespace, own, api, auditMs, turnMs, timeoutMs, heldMs, heldElsewhere, metrics, uidOf } = parts
    const log = parts.log('secretcontroller')
    this.#awaited = new AwaitedClusters({
      ...{ timeoutMs, heldMs, heldElsewhere, log, metrics },
      followed: () => [...this.#running.values()],
      isKnown: () => this.#secrets.isKnown && (this.#namespace?.isKnown ?? true),
      unread: () => this.#unread,
    })
    this.#secrets = new FollowedSecrets({
      ...{ namespace, own, api, log, auditMs, turnMs },
      settled: () => this.#settled(),
      failed: () => this.#awaited.judge(),
    })
    if (namespace !== registriesNamespace)
      this.#namespace = new RegistriesNamespace({
        ...{ namespace, api, log, auditMs },
        hasSecrets: () => this.#secrets.areSome,
        changed: () => this.#awaited.judge(),
      })
    this.#identities = new ClusterIdentities(own, log, uidOf)
  }

  /** Follows the Secrets from now on. `actorOf` returns the actor for a cluster. */
  follow(supervisor: Supervisor, actorOf: (cluster: string) => LateActor): void {
    this.#supervisor = supervisor
    this.#actorOf = actorOf
    this.#secrets.start()
    this.#namespace?.start()
    void this.#awaited.watch(supervisor)
    void this.#identify(this.#parts.own, '', this.#parts.api)
  }

  /** What is wrong, for the body of `/ready`. None of it keeps the service from being ready. */
  get troubles(): readonly string[] {
    return [...this.#faults, ...this.#unreadable, ...this.#awaited.lines]
  }

  /** Why no remote secret is read. */
  get #unreadable(): readonly string[] {
    const { trouble } = this.#namespace ?? {}
    return [...this.#secrets.troubles, ...(trouble === undefined ? [] : [trouble])]
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
    return [...running.values(), ...others, ...this.#unreadable.map((trouble) => ({ name: '', secret: '', actor: '', trouble, isHeld: false }))]
  }

  /** Why clusters that other replicas may have are not read here, and which may be these. */
  get #unread(): UnreadClusters | undefined {
    if (this.#secrets.isForbidden) return { why: 'its role does not permit to read remote secrets', mayBe: () => true }
    if (this.#namespace?.trouble !== undefined)
      return { why: `there is no remote secret in the namespace ${this.#parts.namespace}`, mayBe: () => true }
    const unusable = this.#unusable
    return unusable.size > 0 ? { why: 'the key of a remote secret cannot be used', mayBe: (id) => unusable.has(id) } : undefined
  }

  /** Decides on a token of another cluster by the API server of that cluster. */
  review(question: TokenReviewQuestion, asking: Asking = patient): Promise<TokenVerdict> {
    const { cluster = '' } = question
    const running = this.#running.get(cluster)
    if (running) return running.reviews.answers.reviewToken(question, asking)
    const unavailable = !this.#secrets.isKnown
    const reason = unavailable ? 'which clusters there are is not known yet' : 'no remote secret that can be read names it'
    return Promise.resolve({ refused: `the call is for the cluster ${described(cluster)} (metadata clusterid): ${reason}`, unavailable })
  }

  /** The calls to the API server of another cluster; undefined where no remote secret names it. */
  apiOf(cluster: string): ClusterApi | undefined {
    return this.#running.get(cluster)?.api
  }

  close(): void {
    this.#isClosed = true
    this.#awaited.close()
    this.#secrets.close()
    this.#namespace?.close()
    for (const { api, restart, linger } of this.#running.values()) {
      restart?.cancel()
      linger?.cancel()
      api.close()
    }
  }

  get #log() {
    return this.#parts.log('secretcontroller')
  }

  #access(cluster: string): Promise<ClusterAccess> {
    const running = this.#running.get(cluster)
    return running ? Promise.resolve(running.remote.access) : Promise.reject(new Error(`no remote secret names the cluster ${cluster}`))
  }

  /** What cannot be read may name the cluster. */
  #isNamed(cluster: string): Promise<boolean> {
    const isNamed = this.#running.has(cluster)
    return isNamed || this.#secrets.isListed ? Promise.resolve(isNamed) : Promise.reject(new Error('which clusters there are is not known yet'))
  }

  /** What was told belongs together: starts, changes and removes clusters. */
  #settled(): void {
    const result = this.#isClosed ? undefined : this.#secrets.result()
    if (!result) return
    this.#namespace?.judge()
    const { clusters: named, unusable, faults, faulty } = result
    this.#unusable = unusable
    this.#identities.keep(new Set([...named.keys(), ...this.#running.keys()]))
    const followed = Array.from(this.#running.values(), ({ remote }) => remote)
    const twins = this.#identities.twins(followed, named)
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
    this.#awaited.judge()
  }

  /** Asks a cluster who it is. Where it is another one than before, the former one vouches for nobody any more (docs/identity.md, I12). */
  async #identify(id: string, text: string, api: ClusterApi): Promise<void> {
    const isCurrent = () => !this.#isClosed && (id === this.#parts.own || this.#running.get(id)?.remote.text === text)
    if (await this.#identities.identify(id, text, api, isCurrent)) void this.#supervisor?.askAll('xds-writer', 'clusterReplaced', id)
    this.#settled()
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
    this.#awaited.judge()
  }
}
