/**
 * The mesh snapshot: everything known at one moment, indexed, never changed. Parts that did not change keep their identity
 * from one snapshot to the next; that is what lets the generators see at a glance what they need not make again.
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
  /** Checks of policies that are left out. */
  readonly optOuts: OptOuts
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
  readonly services: ServicesByHost
  /** Addresses of services that have none, for proxies that want them. */
  readonly allocated: Pick<AllocatedAddresses, 'of'>
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
  /** Objects before and after. Entries are not among them: what they change is services. */
  readonly objects: readonly ObjectChange[]
  /** Hosts of services of which more changed than load assignments show. */
  readonly services: ReadonlySet<string>
  /** Hosts of services of which anything changed. */
  readonly hosts: ReadonlySet<string>
  /** Whether anything else changed: the mesh configuration, networks, their gateways, key sets. */
  readonly settings: boolean
}

/** Whether load assignments are all that a proxy could see of the changes. */
export function isOnlyEndpoints({ objects, services, settings }: Changes): boolean {
  return objects.length === 0 && services.size === 0 && !settings
}

/** Whether nothing a proxy could see has changed. */
export function isNothing(changes: Changes): boolean {
  return isOnlyEndpoints(changes) && changes.hosts.size === 0
}
