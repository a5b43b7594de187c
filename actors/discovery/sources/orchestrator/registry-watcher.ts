/**
 * The actor that follows the registry of a cluster, and the base of all actors that follow a cluster: lists and watches the kinds that its
 * parts name, and emits what they tell (`ServiceChanged`, `EndpointsChanged`, `ConfigChanged`) to the push queue, and secrets to the writers
 * that subscribed to them (`SecretsWanted`, `SecretChanged`), and what they have read beside it to the analyzer (`SeenEvent`). Its replay ends when all awaited kinds have been listed. Asks the main thread how
 * the server is reached (`clusterAccess`).
 */

import type { SeenEvent } from '../../../../protocols/messages/analysis.ts'
import type { MeshNamesEvent } from '../../../../protocols/messages/identity.ts'
import type { InjectorEvent, InjectorWebhooksEvent } from '../../../../protocols/messages/injection.ts'
import { attentionNote, unknownNote } from '../../../../protocols/messages/notes.ts'
import type { MeshObjectEvent } from '../../../../protocols/messages/object-status.ts'
import type { ClusterAccess, ClusterStatus, RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { RegistrationObjectEvent } from '../../../../protocols/messages/registration.ts'
import type { NamespaceRootsEvent } from '../../../../protocols/messages/root-certificates.ts'
import type { SecretCommand, SecretEvent } from '../../../../protocols/messages/secrets.ts'
import type { Features } from '../../../../src/config/features.ts'
import type { Fault } from '../../../../src/config/shape.ts'
import { LineBounds } from '../../../../src/logging/line-bounds.ts'
import { count } from '../../../../src/model/counts.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { checkDeclared } from '../../../../src/orchestrator/access.ts'
import { isTooLong } from '../../../../src/orchestrator/cluster-bounds.ts'
import { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import { clusterTrouble } from '../../../../src/orchestrator/cluster-trouble.ts'
import type { Listed, Refusal } from '../../../../src/orchestrator/list-watch.ts'
import { inNamespaces, type Resource, shownResource } from '../../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../../src/orchestrator/responses.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { patient } from '../../../runtime/ask.ts'
import { monotonicMs, wallClockMs } from '../../../runtime/clock.ts'
import type { Peer, Replay } from '../../../runtime/link.ts'
import { checkEvery, type Timer } from '../../../runtime/timers.ts'
import { ApiSession } from '../../cluster/api-session.ts'
import { FollowedResource, type ResourceEvents } from '../../cluster/followed-resource.ts'
import { sendEvent, sourceOfActor } from '../../events/source-events.ts'
import { SeenReports } from '../seen-reports.ts'
import { FollowTroubles } from './follow-troubles.ts'
import { IngressPart } from './ingress-part.ts'
import { IngressStatus } from './ingress-status.ts'
import { InjectorPart } from './injector-part.ts'
import { KeptOfCluster } from './kept-of-cluster.ts'
import { RegistryPart } from './registry-part.ts'
import { ResourcesPart } from './resources-part.ts'
import { RootCertificatesPart } from './root-certificates-part.ts'
import { SecretsPart } from './secrets-part.ts'
import { SettingsPart } from './settings-part.ts'
import { WatcherMetrics } from './watcher-metrics.ts'
import type { Follower, WatcherPart, Watching } from './watcher-part.ts'

/** The number of faults of an object that are told. */
const mostFaults = 20

/** A kind that is followed: what is done with it, and its list and watch. */
interface Followed {
  readonly follower: Follower
  readonly watch: FollowedResource
}

/** What only the watcher of configuration emits. */
type OfConfig = MeshObjectEvent | RegistrationObjectEvent
type Sent = OfConfig | SourceEvent | SecretEvent | NamespaceRootsEvent | InjectorEvent | InjectorWebhooksEvent | SeenEvent

/** What a watcher is made of. */
export interface WatcherMake {
  readonly parts: readonly WatcherPart[]
  /** Undefined: it follows no services. */
  readonly registry?: ClusterRegistry
  readonly asks?: Behaviour<never>['asks']
  readonly receive?: (command: SecretCommand, from: Peer<SecretEvent>) => void
  /** Ends what the parts have begun beside them. */
  readonly close?: () => void
  /** What becomes of the followers of the parts before they are followed. */
  readonly adapt?: (follower: Follower) => Follower
}

/** Follows the kinds of its parts. */
export class ClusterWatcher implements Behaviour<SecretCommand | MeshNamesEvent, Sent>, Watching {
  readonly asks: Behaviour<never>['asks']
  readonly #context: ActorContext<RegistryWatcherConfig>
  readonly #session: ApiSession
  readonly #parts: readonly WatcherPart[]
  readonly #make: WatcherMake
  /** By the path of the resource. */
  readonly #followed = new Map<string, Followed>()
  /** The paths that are followed for that of a follower: one for each namespace. */
  readonly #pathsOf = new Map<string, readonly string[]>()
  readonly #metrics: WatcherMetrics
  /** What may be kept of another cluster; undefined: it is the own one. */
  readonly #bounds: KeptOfCluster | undefined
  /** The paths of the resources that have been listed. */
  readonly #listed = new Set<string>()
  /** The paths of the resources that are not awaited any more, since they cannot be listed. */
  readonly #unread = new Set<string>()
  /** What `/ready` says of resources that cannot be followed at present. */
  readonly #troubles: FollowTroubles
  /** Why the audits of resources fail, as it was logged, by path. */
  readonly #auditTroubles = new Map<string, string>()
  /** The kinds of which nothing was heard for too long, by path: since when, in monotonic milliseconds. */
  readonly #stale = new Map<string, number>()
  readonly #staleCheck: Timer
  #isListed = false
  /** The faults of objects that were told, by resource and key. */
  readonly #faults = new Map<string, string>()
  readonly #faultLines = new LineBounds()
  #queue: Peer<SourceEvent> | undefined
  #replay: Replay | undefined

  /** `make` returns the parts. With `send` they emit, from then on. `access`: how the server is reached, by default that of the own cluster. */
  constructor(
    context: ActorContext<RegistryWatcherConfig>,
    make: (tools: { readonly send: (event: SourceEvent) => void; readonly following: Watching }) => WatcherMake,
    access = (isRefused: boolean): Promise<ClusterAccess> => context.askFor(patient, 'clusterAccess', isRefused),
  ) {
    const { perSecond, burst, userAgent, staleMs } = context.config
    this.#context = context
    this.#troubles = new FollowTroubles(context.config.cluster, context.log('orch'))
    this.#bounds = context.config.isRemote
      ? new KeptOfCluster(context.config, (line) => {
          context.log('orch').error(line)
          this.#noteTroubles()
        })
      : undefined
    this.#session = new ApiSession({
      ...{ perSecond, burst, userAgent, access },
      log: context.log('klog'),
    })
    const send = (event: SourceEvent) => {
      if (this.#queue) sendEvent(this.#queue, event)
    }
    this.#make = make({ send, following: this })
    const { parts, registry, asks, adapt = (follower: Follower) => follower } = this.#make
    this.#metrics = new WatcherMetrics(
      context.metrics,
      () => [...this.#followed].map(([path, { watch }]) => ({ kind: watch.resource.kind, age: watch.age, isStale: this.#stale.has(path) })),
      registry,
      context.config.isRemote ? ` of ${context.config.cluster}` : '',
    )
    this.#staleCheck = checkEvery(Math.min(staleMs / 4, 5000), () => this.#checkStale())
    this.asks = { cluster: (): ClusterStatus => this.#status(), ...asks }
    this.#parts = parts
    for (const part of this.#parts) for (const follower of part.followers) this.follow(adapt(follower))
  }

  linked(peer: Peer<Sent>): void {
    if (peer.kind !== 'push-queue') {
      for (const part of this.#parts) part.linked?.(peer)
      return
    }
    this.#queue = peer
    this.#replay = peer.replay()
    for (const part of this.#parts) part.replay()
    this.#finishReplay()
  }

  unlinked(peer: Peer<Sent>): void {
    if (peer.kind !== 'push-queue') {
      for (const part of this.#parts) part.unlinked?.(peer)
      return
    }
    this.#queue = undefined
    this.#replay = undefined
  }

  receive(message: SecretCommand | MeshNamesEvent, from: Peer): void {
    if (message.type === 'MeshNamesChanged') for (const part of this.#parts) part.meshChanged?.(message)
    else this.#make.receive?.(message, from as Peer<SecretEvent>)
  }

  async drain(): Promise<void> {
    this.#staleCheck.cancel()
    for (const { watch } of this.#followed.values()) watch.close()
    for (const part of this.#parts) part.close?.()
    this.#make.close?.()
    this.#session.close()
  }

  get isListed(): boolean {
    return this.#isListed
  }

  get troubles(): readonly string[] {
    return [...this.#troubles.texts, ...(this.#bounds?.troubles ?? [])]
  }

  follow(follower: Follower): void {
    const { resource } = follower
    if (this.#pathsOf.has(resource.path)) return
    for (const verb of ['list', 'watch'] as const) checkDeclared(verb, resource.name)
    const resources = inNamespaces(resource, this.#context.config.namespaces)
    const waiting = new Set(resources.map(({ path }) => path))
    this.#pathsOf.set(resource.path, [...waiting])
    // A follower is told that all is listed when that is so in every namespace.
    const listed = (path: string) => {
      waiting.delete(path)
      if (waiting.size === 0) follower.listed?.()
    }
    for (const each of resources) this.#follow({ ...follower, resource: each, listed: () => listed(each.path) })
  }

  #follow(follower: Follower): void {
    const { path } = follower.resource
    const watch = new FollowedResource(follower.resource, this.#session, this.#eventsOf(follower))
    this.#followed.set(path, { follower, watch })
    watch.start(this.#context.config.auditMs)
  }

  unfollow(path: string): void {
    const wasNoted = (this.#pathsOf.get(path) ?? []).map((each) => this.#unfollow(each))
    this.#pathsOf.delete(path)
    if (wasNoted.includes(true)) this.#noteTroubles()
    this.#completed()
  }

  /** Returns whether there was anything wrong with it. */
  #unfollow(path: string): boolean {
    const followed = this.#followed.get(path)
    followed?.watch.close()
    this.#followed.delete(path)
    this.#listed.delete(path)
    this.#bounds?.freeAll(path)
    this.#unread.delete(path)
    this.#auditTroubles.delete(path)
    return [followed !== undefined && this.#troubles.drop(path, shownResource(followed.follower.resource)), this.#stale.delete(path)].includes(true)
  }

  #eventsOf(follower: Follower): ResourceEvents<unknown> {
    const { resource } = follower
    const { kind, path } = resource
    return {
      read: (value, isGone) => this.#read(follower, value, isGone),
      mostAudited: this.#bounds?.mostListed,
      set: (key, object, isNew) => {
        this.#metrics.changed(kind, isNew ? 'add' : 'update')
        follower.set(key, object)
      },
      same: () => this.#metrics.changed(kind, 'updatesame'),
      remove: (key) => {
        this.#metrics.changed(kind, 'delete')
        this.#bounds?.removed(path, key)
        this.#faults.delete(`${path} ${key}`)
        follower.set(key, undefined)
      },
      complete: () => {
        this.#listed.add(path)
        this.#context
          .log('source')
          .debug(
            `cluster ${this.#context.config.cluster}: ${shownResource(follower.resource)}: a list was read whole: ${count(this.#followed.get(path)?.watch.size ?? 0, 'object')}`,
          )
        if (this.#bounds?.listed(path)) this.#noteTroubles()
        follower.listed?.()
        this.#completed()
        if (this.#unread.delete(path)) this.#replayRead()
      },
      failed: (verb, refusal, reason) => this.#failed(follower, verb, refusal, reason),
      recovered: () => this.#recovered(follower),
      auditFailed: (refusal, reason) => this.#auditFailed(resource, refusal, reason),
      audited: (missed) => {
        if (this.#auditTroubles.delete(path))
          this.#context.log('orch').info(`cluster ${this.#context.config.cluster}: ${shownResource(resource)} are compared with lists again`)
        this.#metrics.audited(kind, missed)
        if (missed > 0 && !this.#bounds?.isFull)
          this.#context
            .log('orch')
            .warn(
              `${shownResource(resource)}: the watch had not told of ${count(missed, 'object')} that a list of the server has otherwise; all are listed again`,
            )
      },
      settled: () => {
        this.#settled()
        this.#completed()
      },
    }
  }

  /** Cuts an object to what is used. One that cannot be used is told, and keeps its last state. Of one that is gone nothing is used. */
  #read({ resource, cut }: Follower, value: Readonly<Record<string, unknown>>, isGone: boolean): Listed<unknown> | undefined {
    const known = keyAndVersion(value)
    if (!known) return undefined
    const [key, version] = known
    if (resource.namespace !== undefined && !key.startsWith(`${resource.namespace}/`)) return this.#tellForeign(resource, key)
    if (isGone) return this.#bounds && isTooLong(key, version) ? undefined : { key, version, object: undefined }
    const { object, faults, isLate } = cut(value)
    const notTaken = this.#bounds?.take(resource, key, version, object)
    // A version that is too long is not kept either.
    if (notTaken) return notTaken.isKnown ? { key, version: isTooLong(key, version) ? '' : version, object: undefined } : undefined
    if (!isLate) this.tellFaults(resource, key, faults, object !== undefined)
    return { key, version, object }
  }

  /** A server has answered with an object of another namespace than it was asked for (`--appNamespace`), which is left out. */
  #tellForeign({ kind, path, namespace }: Resource, key: string): undefined {
    const line = `${kind} ${key.slice(0, 600)} of cluster ${this.#context.config.cluster}: the server was asked for the namespace ${namespace}; it is left out`
    const bounded = this.#faultLines.bounded(path, line, monotonicMs())
    if (bounded !== undefined) this.#context.log('orch').error(bounded)
  }

  tellFaults(resource: Resource, key: string, faults: readonly Fault[], isUsed: boolean): void {
    this.#logFaults(resource, key, faults, isUsed ? 'this part is left out' : 'its last good state stays')
    this.#metrics.read(faults.length === 0)
  }

  /** Logs the faults of an object when they are others than before: a list has them again, and so has the event of its removal. */
  #logFaults({ kind, path }: Resource, key: string, faults: readonly Fault[], consequence: string): void {
    if (faults.length === 0 && this.#faults.size === 0) return
    const at = `${path} ${key}`
    const lines = faults
      .slice(0, mostFaults)
      .map((fault) => `${kind} ${key} of cluster ${this.#context.config.cluster}, field ${fault.path}: ${fault.reason}; ${consequence}`)
    const all = lines.join('\n')
    if (this.#faults.get(at) === all) return
    if (faults.length === 0) return void this.#faults.delete(at)
    this.#faults.set(at, all)
    // Whoever may write objects of one namespace must not fill the log.
    const writer = `${kind} ${key.slice(0, key.indexOf('/'))}`
    for (const line of lines) {
      const bounded = this.#faultLines.bounded(writer, line, monotonicMs())
      if (bounded !== undefined) this.#context.log('orch').error(bounded)
    }
  }

  mayBeComplete(): void {
    this.#completed()
  }

  /** What has to be listed before the replay can end. */
  get #awaited(): readonly Followed[] {
    return [...this.#followed].flatMap(([path, each]) => (each.follower.isAwaited && !this.#listed.has(path) && !this.#unread.has(path) ? each : []))
  }

  /** Ends the replay once all awaited kinds have been listed, and no part waits for more. */
  #completed(): void {
    if (this.#isListed) return
    if (this.#awaited.length > 0) return
    this.#settled()
    const unknown = this.#parts.flatMap((part) => part.waitsFor?.() ?? [])
    this.#context.note(unknownNote, unknown)
    if (unknown.length > 0) return
    this.#isListed = true
    const sizes = [...this.#followed.values()].map(({ follower, watch }) => `${shownResource(follower.resource)} ${watch.size}`)
    this.#context.log('orch').info(`cluster ${this.#context.config.cluster}: ${sizes.join(', ')}`)
    const { server } = this.#session.status
    this.#context.log('source').info(`the objects of cluster ${this.#context.config.cluster} (${server}) have been read, and are followed`)
    this.#finishReplay()
  }

  #failed(follower: Follower, verb: string, refusal: Refusal | undefined, reason: string): void {
    const { resource, isAwaited } = follower
    const { kind, path } = resource
    this.#metrics.failed(kind)
    const forbidden = forbiddenBy(refusal, verb, resource)
    const what = forbidden ?? `${verb} of ${shownResource(resource)} failed`
    const isUnread = isAwaited && !this.#listed.has(path)
    if (isUnread && follower.mayBeUnread) this.#unread.add(path)
    const isListed = this.#listed.has(path)
    const consequence = isListed
      ? 'the last state stays'
      : this.#unread.has(path)
        ? '--allowUnreadableConfig is set: the process goes on without them'
        : isUnread && !this.#isListed
          ? this.#context.config.isRemote
            ? 'nothing new of this cluster is known before they are listed'
            : 'the service is not ready before they are listed'
          : ''
    this.#troubles.failed({ path, shown: shownResource(resource), what, refusal, reason, consequence, isListed })
    this.#noteTroubles()
    follower.failed?.(`${what}: ${reason}`)
    if (forbidden !== undefined) follower.forbidden?.()
    if (this.#unread.has(path)) this.#completed()
  }

  /** Tells once of each reason why the audits of a resource fail. It is followed meanwhile: it is no trouble of the service. */
  #auditFailed(resource: Resource, refusal: Refusal | undefined, reason: string): void {
    this.#metrics.auditFailed(resource.kind)
    const what = forbiddenBy(refusal, 'list', resource) ?? `list of ${shownResource(resource)} failed`
    const trouble = `cluster ${this.#context.config.cluster}: ${what}: ${reason}; what is known was not compared with the server, which is tried again at the next audit`
    if (this.#auditTroubles.get(resource.path) !== trouble) this.#context.log('orch').error(trouble)
    this.#auditTroubles.set(resource.path, trouble)
  }

  #recovered({ resource, recovered }: Follower): void {
    this.#troubles.recovered(resource.path, shownResource(resource))
    this.#noteTroubles()
    recovered?.()
  }

  #noteTroubles(): void {
    const { cluster } = this.#context.config
    const stale = [...this.#stale.keys()].flatMap((path) => {
      const followed = this.#followed.get(path)
      return followed ? [`cluster ${cluster}: ${shownResource(followed.follower.resource)} are stale: ${this.#staleness}`] : []
    })
    this.#context.note(attentionNote, [...this.#troubles.texts, ...(this.#bounds?.troubles ?? []), ...stale])
  }

  get #staleness(): string {
    return `the API server has sent nothing about them for ${this.#context.config.staleMs / 1000} s; the last state stays`
  }

  /** Finds the kinds that have become stale, and those that no longer are. */
  #checkStale(): void {
    const { cluster, staleMs } = this.#context.config
    const log = this.#context.log('orch')
    const before = this.#stale.size
    let isChanged = false
    for (const [path, { follower, watch }] of this.#followed) {
      const name = shownResource(follower.resource)
      const since = this.#stale.get(path)
      if (watch.silentMs > staleMs && since === undefined) {
        this.#stale.set(path, monotonicMs() - watch.silentMs)
        log.error(`cluster ${cluster}: ${name} are stale: ${this.#staleness}`)
      } else if (watch.silentMs <= staleMs && since !== undefined) {
        this.#stale.delete(path)
        log.info(`cluster ${cluster}: ${name} are no longer stale, after ${Math.round((monotonicMs() - since) / 1000)} s`)
        isChanged = true
      }
    }
    if (isChanged || this.#stale.size !== before) this.#noteTroubles()
    this.#noteUnlisted()
  }

  /** Says of which kinds the first list is not there yet, while the service waits for it. */
  #noteUnlisted(): void {
    const waiting = this.#awaited
    if (this.#isListed || waiting.length === 0) return
    const lines = waiting.map(({ follower, watch }) => {
      const { mode, objects } = watch.status
      return `cluster ${this.#context.config.cluster}: ${shownResource(follower.resource)} have not been listed whole yet (${mode}, ${count(objects, 'object')} so far)`
    })
    this.#context.note(unknownNote, lines)
  }

  #status(): ClusterStatus {
    const kinds = [...this.#followed].map(([path, { watch }]) => ({ ...watch.status, isStale: this.#stale.has(path) }))
    const objects = kinds.reduce((sum, each) => sum + each.objects, 0)
    const trouble = clusterTrouble({
      ...{ silentMs: this.#session.silentMs, now: wallClockMs(), objects, isComplete: this.#isListed },
      reasons: [...this.#troubles.reasons, ...(this.#bounds?.troubles ?? [])],
    })
    return { name: this.#context.config.cluster, ...this.#session.status, isComplete: this.#isListed, trouble, kinds }
  }

  #settled(): void {
    for (const part of this.#parts) part.settled()
    this.#metrics.settled()
  }

  /** Nothing is withdrawn by what could not be read whole. */
  #finishReplay(): void {
    if (!this.#isListed) return
    this.#replay?.finish(this.#unread.size === 0)
    this.#replay = undefined
  }

  /** What could not be read has been listed: once that is so of all, what an earlier incarnation told and is gone is withdrawn. */
  #replayRead(): void {
    if (!this.#isListed || this.#unread.size > 0 || !this.#queue) return
    this.#replay = this.#queue.replay()
    for (const part of this.#parts) part.replay()
    this.#finishReplay()
  }
}

/** What RBAC does not permit; undefined: it is not what has refused the request. */
function forbiddenBy(refusal: Refusal | undefined, verb: string, { name, namespace }: Resource): string | undefined {
  if (refusal?.code !== 403) return undefined
  return `the role of this service account does not permit "${verb}" of "${name}"${namespace === undefined ? '' : ` in the namespace ${namespace}`}`
}

/** The actor definition of the watcher of the registry of a cluster. */
export const actor: ActorDefinition<RegistryWatcherConfig, SecretCommand | MeshNamesEvent, Exclude<Sent, OfConfig>> = {
  kind: 'source',
  start: (context) =>
    new ClusterWatcher(context, ({ send, following }) => {
      const { features, domain, cluster, namespaces, settings, keepsRoots, ingressNamespace } = context.config
      const { MESH_DOMAIN, REVISION, PILOT_USE_ENDPOINT_SLICE: usesSlices, INJECT_ENABLED } = features as Features
      const { INJECTION_WEBHOOK_CONFIG_NAME: webhookConfig, PILOT_ENABLE_ANALYSIS: analyzes } = features as Features
      const names = meshNames(MESH_DOMAIN)
      const source = sourceOfActor(context.name)
      const registry = new ClusterRegistry({ names, domain, cluster })
      if (!usesSlices)
        context
          .log('orch')
          .warn(
            'PILOT_USE_ENDPOINT_SLICE=false: endpoints are read from Endpoints, which the orchestrator has deprecated and which have at most 1,000 addresses of a service, of one family; unset, or true, EndpointSlices are read, which have all',
          )
      const seen = analyzes ? new SeenReports(source) : undefined
      const resources = seen && new ResourcesPart(seen, cluster, () => following.isListed)
      const secrets = new SecretsPart({
        ...{ names, cluster, seen, namespaces, following, metrics: context.metrics, log: context.log },
        mayList: (reader) => context.askFor(patient, 'secretAccess', reader),
      })
      const roots = keepsRoots ? new RootCertificatesPart(names.domain, namespaces) : undefined
      const place = { meshDomain: MESH_DOMAIN, domain, gateways: ingressNamespace, source, cluster }
      const mayDiffer = () => following.mayBeComplete()
      const ingresses = new IngressPart({ ...place, names, registry, log: context.log('orch'), send, mayDiffer })
      const status = new IngressStatus({
        ...{ ingresses, registry, namespace: ingressNamespace, log: context.log('orch') },
        ask: context.askFor,
        write: (order) => context.askFor(patient, 'writeIngressStatus', order),
      })
      const parts = [
        new RegistryPart(registry, { names, source, cluster }, usesSlices, send),
        new SettingsPart(settings, REVISION, {
          ...{ source, log: context.log, send, mayDiffer },
          told: seen && ((what, at, found) => seen.setting(what, at, found)),
        }),
        ingresses,
        ...(roots ? [roots] : []),
        ...(INJECT_ENABLED ? [new InjectorPart({ ...{ namespace: settings.namespace, revision: REVISION, names }, webhookConfig, seen })] : []),
        secrets,
        ...(resources ? [resources] : []),
      ]
      const adapt = (given: Follower) => {
        const follower = resources?.tap(given) ?? given
        return roots && follower.resource.kind === 'Namespace' ? roots.tap(follower) : follower
      }
      // `secrets` lists the Secrets that gateways may use, without their content.
      const asks = { secrets: () => secrets.summaries() }
      return { registry, parts, asks, adapt, receive: (command, from) => secrets.wanted(from, command), close: () => status.close() }
    }),
}
