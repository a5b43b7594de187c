/**
 * The part of a cluster's watcher that follows Services, EndpointSlices or Endpoints, Pods, Nodes and Namespaces: tells services and endpoints
 * (`ServiceChanged`, `EndpointsChanged`), and the objects that the push queue itself decides on (`ConfigChanged`).
 */
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import type { ClusterRegistry, RegistryChange } from '../../../../src/orchestrator/cluster-registry.ts'
import { namespaceFields, nodeFields, podFields, serviceFields, sliceFields } from '../../../../src/orchestrator/object-fields.ts'
import { type ClusterObject, type CutObjects, cut, type FollowedKind, type ObjectOrigin } from '../../../../src/orchestrator/objects.ts'
import { coreResource, groupResource, type Resource } from '../../../../src/orchestrator/resources.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

/** What is followed of each kind. */
export const registryResources: { readonly [Kind in FollowedKind]: Resource } = {
  Namespace: { ...coreResource('Namespace', 'namespaces'), fields: namespaceFields },
  Node: { ...coreResource('Node', 'nodes'), fields: nodeFields },
  Service: { ...coreResource('Service', 'services'), fields: serviceFields },
  Pod: { ...coreResource('Pod', 'pods'), fields: podFields },
  EndpointSlice: { ...groupResource('EndpointSlice', 'discovery.k8s.io', 'v1', 'endpointslices'), fields: sliceFields },
  Endpoints: coreResource('Endpoints', 'endpoints'),
}

/** Follows what services and endpoints follow from. */
export class RegistryPart implements WatcherPart {
  readonly followers: readonly Follower[]
  readonly #registry: ClusterRegistry
  readonly #send: (event: SourceEvent) => void
  /** The objects of kinds that the push queue decides on, by kind and key. */
  readonly #objects = new Map<string, ClusterObject>()
  /** The kinds that have been listed. */
  readonly #listed = new Set<FollowedKind>()

  /** `usesSlices`: whether endpoints come from EndpointSlices, and not from Endpoints. */
  constructor(registry: ClusterRegistry, origin: ObjectOrigin, usesSlices: boolean, send: (event: SourceEvent) => void) {
    this.#registry = registry
    this.#send = send
    const kinds = (Object.keys(registryResources) as FollowedKind[]).filter((kind) => kind !== (usesSlices ? 'Endpoints' : 'EndpointSlice'))
    this.followers = kinds.map((kind) => ({
      resource: registryResources[kind],
      isAwaited: true,
      cut: (value) => cut(kind, value, origin),
      set: (key, object) => this.#set(kind, key, object as CutObjects[FollowedKind] | undefined),
      listed: () => void this.#listed.add(kind),
    }))
  }

  replay(): void {
    for (const object of this.#objects.values()) this.#sendObject(object)
    if (this.#isListed) for (const change of this.#registry.all()) this.#sendChange(change)
  }

  /** Sends what has changed of services, once all kinds have been listed: before, endpoints would lack their pods. */
  settled(): void {
    if (this.#isListed) for (const change of this.#registry.take()) this.#sendChange(change)
  }

  get #isListed(): boolean {
    return this.#listed.size === this.followers.length
  }

  #set(kind: FollowedKind, key: string, object: CutObjects[FollowedKind] | undefined): void {
    this.#registry.set(kind, key, object)
    if (kind === 'Service' || kind === 'EndpointSlice' || kind === 'Endpoints') return
    const at = `${kind} ${key}`
    const before = this.#objects.get(at)
    if (object) this.#objects.set(at, object as ClusterObject)
    else this.#objects.delete(at)
    if (object) this.#sendObject(object as ClusterObject)
    else if (before) this.#send({ type: 'ConfigChanged', key: configKey(before.object), object: undefined, at: monotonicMs() })
  }

  #sendObject({ object }: ClusterObject): void {
    this.#send({ type: 'ConfigChanged', key: configKey(object), object, at: monotonicMs() })
  }

  #sendChange(change: RegistryChange): void {
    const parts = { registry: this.#registry.id, key: change.key, at: monotonicMs() }
    if (change.type === 'service') this.#send({ type: 'ServiceChanged', ...parts, service: change.service, slices: change.slices })
    else this.#send({ type: 'EndpointsChanged', ...parts, part: change.part, slice: change.slice })
  }
}
