/**
 * The mesh snapshot: everything known at one moment, indexed, never changed. Parts that did not change keep their identity
 * from one snapshot to the next; that is what lets the generators see at a glance what they need not make again.
 */
import type { Endpoint, Service } from '../../protocols/data.ts'
import type { Features } from '../config/features.ts'
import type { MeshConfig, MeshNetworks } from '../config/mesh-config.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { DestinationRuleIndex } from './destination-rules.ts'
import type { KeySets } from './key-sources.ts'
import type { EnvoyFilter, Gateway, Sidecar } from './objects.ts'
import type { PolicyIndex } from './policies.ts'
import type { VirtualServiceIndex } from './virtual-services.ts'
import type { Visibility } from './visibility.ts'

/** What stays the same as long as the process runs. */
export interface Settings {
  readonly features: Features
  readonly names: MeshNames
  /** DNS suffix of the cluster, `cluster.local`. */
  readonly domain: string
  /** A key set that nobody can sign for: it stands where the keys of an issuer could not be had. */
  readonly lockedKeys: string
  /** Key of the sums that versions come from; known to this process only. */
  readonly versionKey: string
  /** Which policies are enforced, in the order of their filters (`--plugins`); those whose part is not built count for nothing. */
  readonly plugins: readonly string[]
}

/** A service with its endpoints from all sources. Both keep their identity while unchanged. */
export interface ServiceState {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

/** Where a network is entered: an IP address and a port. */
export interface NetworkGateway {
  readonly address: string
  readonly port: number
}

/** Everything known at one moment. */
export interface MeshSnapshot {
  readonly settings: Settings
  readonly mesh: MeshConfig
  readonly networks: MeshNetworks
  /** Gateways by network. */
  readonly networkGateways: ReadonlyMap<string, readonly NetworkGateway[]>
  /** Services by host name; several when namespaces define the same host, sorted by namespace. */
  readonly services: ReadonlyMap<string, readonly ServiceState[]>
  readonly destinationRules: DestinationRuleIndex
  readonly virtualServices: VirtualServiceIndex
  readonly visibility: Visibility
  /** By namespace, oldest first. */
  readonly sidecars: ReadonlyMap<string, readonly Sidecar[]>
  readonly gateways: readonly Gateway[]
  readonly envoyFilters: readonly EnvoyFilter[]
  readonly policies: PolicyIndex
  /** Key sets that were fetched for RequestAuthentications, by where they come from. */
  readonly keySets: KeySets
}

/** What changed from one snapshot to the next. */
export interface Changes {
  /** Kinds of objects that changed; `Service` for services of any registry, `Mesh` for mesh configuration and networks. */
  readonly kinds: ReadonlySet<string>
  /** Keys of changed objects, `<Kind>/<namespace>/<name>`; services are `ServiceEntry/<namespace>/<hostname>`. */
  readonly keys: ReadonlySet<string>
  /** Hosts of which only endpoints changed. */
  readonly endpointHosts: ReadonlySet<string>
}

/** Whether nothing a proxy could see has changed. */
export function isNothing(changes: Changes): boolean {
  return changes.kinds.size === 0 && changes.endpointHosts.size === 0
}
