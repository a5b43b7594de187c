/**
 * The actor that follows a cluster: lists and watches its Services, EndpointSlices, Pods, Nodes and Namespaces, and emits `ServiceChanged`,
 * `EndpointsChanged` and `ConfigChanged` to the push queue. Its replay ends when all kinds have been listed. Asks the main thread how the
 * server is reached (`clusterAccess`).
 */

import { attentionNote } from '../../../../protocols/messages/notes.ts'
import type { RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { Features } from '../../../../src/config/features.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { count } from '../../../../src/model/counts.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { ClusterRegistry, type RegistryChange } from '../../../../src/orchestrator/cluster-registry.ts'
import type { Listed, Refusal } from '../../../../src/orchestrator/list-watch.ts'
import { type ClusterObject, type CutObjects, cut, type FollowedKind, type ObjectOrigin } from '../../../../src/orchestrator/objects.ts'
import { type Resource, resources } from '../../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../../src/orchestrator/responses.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { patient } from '../../../runtime/ask.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Peer, Replay } from '../../../runtime/link.ts'
import { sendEvent, sourceOfActor } from '../../source-events.ts'
import { ApiSession } from '../../cluster/api-session.ts'
import { FollowedResource, type ResourceEvents } from './followed-resource.ts'
import { WatcherMetrics } from './watcher-metrics.ts'

class RegistryWatcher implements Behaviour<never, SourceEvent> {
  readonly #context: ActorContext<RegistryWatcherConfig>
  readonly #registry: ClusterRegistry
  readonly #origin: ObjectOrigin
  readonly #session: ApiSession
  readonly #followed: readonly FollowedResource[]
  readonly #metrics: WatcherMetrics
  /** The objects of kinds that the push queue decides on, by kind and key. */
  readonly #objects = new Map<string, ClusterObject>()
  /** The kinds that have been listed. */
  readonly #listed = new Set<FollowedKind>()
  /** What `/ready` says of kinds that cannot be followed at present. */
  readonly #troubles = new Map<FollowedKind, string>()
  #queue: Peer<SourceEvent> | undefined
  #replay: Replay | undefined

  constructor(context: ActorContext<RegistryWatcherConfig>) {
    const { features, domain, cluster, perSecond, burst, userAgent, auditMs } = context.config
    const names = meshNames((features as Features).MESH_DOMAIN)
    this.#context = context
    this.#origin = { names, source: sourceOfActor(context.name), cluster }
    this.#registry = new ClusterRegistry({ names, domain, cluster })
    this.#session = new ApiSession({ perSecond, burst, userAgent, access: (isRefused) => context.askFor(patient, 'clusterAccess', isRefused) })
    this.#followed = resources.map((resource) => new FollowedResource(resource, this.#session, this.#eventsOf(resource)))
    this.#metrics = new WatcherMetrics(context.metrics, this.#followed, this.#registry)
    for (const followed of this.#followed) followed.start(auditMs)
  }

  linked(peer: Peer<SourceEvent>): void {
    this.#queue = peer
    this.#replay = peer.replay()
    for (const object of this.#objects.values()) this.#sendObject(object)
    if (this.#isListed) for (const change of this.#registry.all()) this.#sendChange(change)
    this.#finishReplay()
  }

  unlinked(): void {
    this.#queue = undefined
    this.#replay = undefined
  }

  receive(): void {}

  async drain(): Promise<void> {
    for (const followed of this.#followed) followed.close()
    this.#session.close()
  }

  get #isListed(): boolean {
    return this.#listed.size === resources.length
  }

  #eventsOf(resource: Resource): ResourceEvents {
    const { kind } = resource
    return {
      read: (value) => this.#read(kind, value),
      set: (key, object) => this.#set(kind, key, object),
      remove: (key) => this.#set(kind, key, undefined),
      complete: () => this.#complete(kind),
      failed: (verb, refusal, reason) => this.#failed(resource, verb, refusal, reason),
      recovered: () => this.#recovered(resource),
      audited: (missed) => {
        this.#metrics.audited(kind, missed)
        if (missed > 0)
          this.#context
            .log('orch')
            .warn(
              `${resource.name}: the watch had not told of ${count(missed, 'object')} that a list of the server has otherwise; all are listed again`,
            )
      },
      settled: () => this.#flush(),
    }
  }

  /** Cuts an object to what is used. One that cannot be used is told, and keeps its last state. */
  #read(kind: FollowedKind, value: Readonly<Record<string, unknown>>): Listed<CutObjects[FollowedKind]> | undefined {
    const known = keyAndVersion(value)
    if (!known) return undefined
    const [key, version] = known
    const { object, faults } = cut(kind, value, this.#origin)
    for (const { path, reason } of faults)
      this.#context
        .log('orch')
        .error(
          `${kind} ${key} of cluster ${this.#origin.cluster}, field ${path}: ${reason}; ${object ? 'this part is left out' : 'its last good state stays'}`,
        )
    this.#metrics.read(faults.length === 0)
    return { key, version, object }
  }

  #set(kind: FollowedKind, key: string, object: CutObjects[FollowedKind] | undefined): void {
    this.#metrics.changed(kind, object === undefined ? 'delete' : 'update')
    this.#registry.set(kind, key, object)
    if (kind === 'Service' || kind === 'EndpointSlice') return
    const at = `${kind} ${key}`
    const before = this.#objects.get(at)
    if (object) this.#objects.set(at, object as ClusterObject)
    else this.#objects.delete(at)
    if (object) this.#sendObject(object as ClusterObject)
    else if (before) this.#send({ type: 'ConfigChanged', key: configKey(before.object), object: undefined, at: monotonicMs() })
  }

  #complete(kind: FollowedKind): void {
    const wasListed = this.#isListed
    this.#listed.add(kind)
    if (wasListed || !this.#isListed) return
    this.#context
      .log('orch')
      .info(`cluster ${this.#origin.cluster}: ${this.#followed.map(({ resource, size }) => `${resource.name} ${size}`).join(', ')}`)
    this.#flush()
    this.#finishReplay()
  }

  #failed({ kind, name }: Resource, verb: string, refusal: Refusal | undefined, reason: string): void {
    this.#metrics.failed(kind)
    const forbidden = refusal?.code === 403 ? `the role of this service account does not permit "${verb}" of "${name}"` : undefined
    const what = forbidden ?? `${verb} of ${name} failed`
    const kept = this.#listed.has(kind) ? 'the last state stays' : 'the service is not ready before they are listed'
    const trouble = `cluster ${this.#origin.cluster}: ${what}: ${reason}; ${kept}`
    if (this.#troubles.get(kind) !== trouble) this.#context.log('orch').error(trouble)
    this.#troubles.set(kind, trouble)
    this.#noteTroubles()
  }

  #recovered({ kind, name }: Resource): void {
    if (this.#troubles.delete(kind)) this.#context.log('orch').info(`cluster ${this.#origin.cluster}: ${name} are followed again`)
    this.#noteTroubles()
  }

  #noteTroubles(): void {
    this.#context.note(attentionNote, [...this.#troubles.values()])
  }

  /** Sends what has changed of services, once all kinds have been listed: before, endpoints would lack their pods. */
  #flush(): void {
    if (this.#isListed) for (const change of this.#registry.take()) this.#sendChange(change)
  }

  #finishReplay(): void {
    if (!this.#isListed) return
    this.#replay?.finish()
    this.#replay = undefined
  }

  #sendObject({ object }: ClusterObject): void {
    this.#send({ type: 'ConfigChanged', key: configKey(object), object, at: monotonicMs() })
  }

  #sendChange(change: RegistryChange): void {
    const parts = { registry: this.#registry.id, key: change.key, at: monotonicMs() }
    if (change.type === 'service') this.#send({ type: 'ServiceChanged', ...parts, service: change.service, slices: change.slices })
    else this.#send({ type: 'EndpointsChanged', ...parts, part: change.part, slice: change.slice })
  }

  #send(event: SourceEvent): void {
    if (this.#queue) sendEvent(this.#queue, event)
  }
}

/** The actor definition of the watcher of a cluster. */
export const actor: ActorDefinition<RegistryWatcherConfig, never, SourceEvent> = {
  kind: 'source',
  start: (context) => new RegistryWatcher(context),
}
