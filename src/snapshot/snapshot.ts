/**
 * The mesh snapshot: everything known at one moment, indexed and immutable. Parts that did not change keep their identity from one snapshot
 * to the next, so that generators detect by identity what they need not make again.
 */
import type { Features } from '../config/features.ts'
import type { MeshConfig, MeshNetworks } from '../config/mesh-config.ts'
import type { OptOuts } from '../config/opt-outs.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { ServicesByHost } from '../registry/merged-services.ts'
import type { AllocatedAddresses } from './allocated-addresses.ts'
import type { DestinationRuleIndex } from './destination-rules.ts'
import type { KeySets } from './key-sources.ts'
import type { ObjectChange } from './object-store.ts'
import type { EnvoyFilter, Gateway, Sidecar } from './objects.ts'
import type { PodIndex } from './pods.ts'
import type { PolicyIndex } from './policies.ts'
import type { SystemNetworks } from './system-networks.ts'
import type { VirtualServiceIndex } from './virtual-services.ts'
import type { Visibility } from './visibility.ts'

/** Settings that are constant for the life of the process. */
export interface Settings {
  readonly features: Features
  readonly names: MeshNames
  /** The DNS suffix of the cluster, `cluster.local`. */
  readonly domain: string
  /**
   * A key set for which nobody has a private key. It is used when the keys of an issuer could not be fetched, so that all tokens are
   * refused.
   */
  readonly lockedKeys: string
  /** The secret key of the digests that versions are made of. */
  readonly versionKey: string
  /** The enforced policy types in the order of their filters (`--plugins`). Types that are not implemented have no effect. */
  readonly plugins: readonly string[]
  /** Checks of policies that are disabled. */
  readonly optOuts: OptOuts
}

/** A host that a server of a Gateway serves, with the namespace of its services; `*`: of any. */
export interface ServerHost {
  readonly namespace: string
  readonly host: string
}

/** What the proxies of a gateway pass on by their configuration: services that their namespace sees and that the hosts cover. */
export interface PassedOn {
  readonly namespace: string
  /** The Gateways that say so, `<namespace>/<name>`. */
  readonly gateways: readonly string[]
  readonly hosts: readonly ServerHost[]
}

/** The address through which a network is reached: an IP address and a port. */
export interface NetworkGateway {
  readonly address: string
  readonly port: number
  /** Undefined: it is not known here, as of a gateway that is given by its address. */
  readonly passedOn?: PassedOn
}

/**
 * Gateways by network, then by the cluster whose endpoints in the network they stand for. The empty cluster stands for all that have none of
 * their own (docs/resources.md, O12).
 */
export type NetworkGateways = ReadonlyMap<string, ReadonlyMap<string, readonly NetworkGateway[]>>

/** Everything known at one moment. */
export interface MeshSnapshot {
  readonly settings: Settings
  readonly mesh: MeshConfig
  readonly networks: MeshNetworks
  /** The networks that clusters have by their system namespaces. */
  readonly systemNetworks: SystemNetworks
  readonly networkGateways: NetworkGateways
  readonly services: ServicesByHost
  /** The hosts of services whose callers prefer endpoints on their own node (docs/resources.md, E10). It is the same set until one of them changes. */
  readonly nodeHosts: ReadonlySet<string>
  /** The clusters in which some service has other addresses than elsewhere (docs/resources.md, O13). */
  readonly vipClusters: ReadonlySet<string>
  /** Allocated addresses of services that have none, for proxies that use them. */
  readonly allocated: Pick<AllocatedAddresses, 'of'>
  readonly destinationRules: DestinationRuleIndex
  readonly virtualServices: VirtualServiceIndex
  readonly visibility: Visibility
  /** By namespace, oldest first. */
  readonly sidecars: ReadonlyMap<string, readonly Sidecar[]>
  readonly gateways: readonly Gateway[]
  readonly envoyFilters: readonly EnvoyFilter[]
  readonly policies: PolicyIndex
  /** Fetched key sets for RequestAuthentications, by source. */
  readonly keySets: KeySets
  /** The pods of all clusters. */
  readonly pods: PodIndex
}

/** The differences between two consecutive snapshots. */
export interface Changes {
  /** Objects before and after. ServiceEntries and WorkloadEntries are not included; their changes are in `services` and `hosts`. */
  readonly objects: readonly ObjectChange[]
  /** Hosts of services with changes that affect more than load assignments. */
  readonly services: ReadonlySet<string>
  /** Hosts of services with any change. */
  readonly hosts: ReadonlySet<string>
  /** Whether pods changed. */
  readonly pods: boolean
  /** Whether the mesh configuration, networks, their gateways or key sets changed. */
  readonly settings: boolean
}

/** Whether the changes affect only load assignments, and which class a proxy is of. */
export function isOnlyEndpoints({ objects, services, settings }: Changes): boolean {
  return objects.length === 0 && services.size === 0 && !settings
}

/** Whether the changes affect no proxy. */
export function isNothing(changes: Changes): boolean {
  return isOnlyEndpoints(changes) && changes.hosts.size === 0 && !changes.pods
}
