/**
 * Groups of clusters and load assignments for upstream services. Those of the shared view are made once for all proxies. A namespace that
 * sees some hosts differently has these in a group of its own, and they are hidden in the shared group. The services that a Sidecar imports
 * are one group.
 */
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { consequences, contain } from '../../model/faults.ts'
import { sameItems } from '../../model/lists.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import { plainView, publicView, type View, type ViewKey, viewOfNamespace } from '../../snapshot/view.ts'
import { gatewayHosts } from '../../xds/clusters/gateway-hosts.ts'
import { accountsOf, commonClusters, outboundClusters, sniDnatClusters } from '../../xds/clusters/outbound.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { allowedEndpointsKey } from '../../xds/endpoints/own-machine.ts'
import { addedClusters, clusterPatcher, hostsOfPatches } from '../../xds/envoy-filter/clusters.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { hostOf } from '../../xds/names.ts'
import { type ProxyClass, type Traits, withoutFilters } from '../../xds/traits.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'
import { KeyedResources } from './keyed-resources.ts'
import { loadAssignments, placeKeyOf } from './load-assignments.ts'
import { allUsable, type Built, GroupMaker, type Making, patched, withAdded } from './making.ts'
import { usableEndpoints, withoutClusters } from './usable-endpoints.ts'

/** The services of a view that one group is made of. */
interface Extent {
  /** Equal for equal extents. It is part of the ids of their groups. */
  readonly id: string
  readonly viewKey: ViewKey
  /** The hosts. Undefined: all hosts of the view. */
  readonly hosts: readonly string[] | undefined
  /** Whether no EnvoyFilter changes clusters of its hosts, so that they are made without any. */
  readonly isUnpatched?: boolean
  /** The gateways to whose destinations the hosts are limited, and the namespace of their proxy. */
  readonly routedBy?: Pick<ProxyClass, 'gateways' | 'namespace'>
}

/** How clusters are made that no EnvoyFilter changes. */
interface Unpatched {
  readonly traits: Traits
  readonly hosts: ReadonlySet<string> | undefined
}

/** A group of the resources of an extent's services, which is made host by host. */
abstract class OfExtent extends GroupMaker {
  protected readonly groups: OutboundGroups
  protected readonly traits: Traits
  readonly extent: Extent

  /** `hiddenBy`: the id of the group of what is hidden in this one. `name` and `key` are those of the kind for these traits. */
  constructor(
    groups: OutboundGroups,
    traits: Traits,
    extent: Extent,
    hiddenBy: string | undefined,
    kind: Pick<GroupMaker, 'typeUrl' | 'given'> & { name: string; key: string },
  ) {
    const { name, key, typeUrl, given } = kind
    super({ id: `${name}|${extent.id}|${key}`, typeUrl, given, hiddenBy })
    this.groups = groups
    this.traits = traits
    this.extent = extent
  }

  /** Makes the resources of one host of the extent, as a view shows it. */
  abstract ofHost(host: string, view: View): readonly Outcome[]

  make(): Built {
    const { hosts } = this.extent
    return { ...this.groups.hostByHost(this), ...(hosts ? { hide: hosts } : {}) }
  }
}

/** Clusters of services that are not resolved by DNS: they contain no endpoints. */
class OutboundClusters extends OfExtent {
  constructor(groups: OutboundGroups, traits: Traits, extent: Extent, hiddenBy?: string) {
    const given = traits.filtersOf.clusters.filters
    super(groups, traits, extent, hiddenBy, { name: 'clusters-out', key: traits.clusterKey, typeUrl: clusterType, given })
  }

  ofHost(host: string, view: View): readonly Outcome[] {
    return this.groups.hostClusters(host, view, this.traits, false)
  }
}

/** Clusters of services that are resolved by DNS, with their endpoints. */
class DnsClusters extends OfExtent {
  constructor(groups: OutboundGroups, traits: Traits, extent: Extent, hiddenBy?: string) {
    const given = traits.filtersOf.clusters.filters
    super(groups, traits, extent, hiddenBy, { name: 'clusters-dns', key: `${traits.clusterKey}|${traits.placeKey}`, typeUrl: clusterType, given })
  }

  ofHost(host: string, view: View): readonly Outcome[] {
    return this.groups.hostClusters(host, view, this.traits, true)
  }
}

/**
 * Load assignments, except those of {@link NodeAssignments}. EnvoyFilters do not apply to them, so classes with different filters share the group.
 */
class LoadAssignments extends OfExtent {
  constructor(groups: OutboundGroups, traits: Traits, extent: Extent, hiddenBy?: string) {
    super(groups, traits, extent, hiddenBy, { name: 'endpoints', key: endpointKey(traits), typeUrl: endpointType, given: [] })
  }

  ofHost(host: string, view: View): readonly Outcome[] {
    return this.groups.hostEndpoints(host, view, this.traits, false)
  }
}

/** Load assignments of the services whose callers prefer endpoints on their own node: for the proxies of one node (docs/resources.md, E10). */
class NodeAssignments extends OfExtent {
  constructor(groups: OutboundGroups, traits: Traits, extent: Extent, hiddenBy?: string) {
    const key = JSON.stringify([endpointKey(traits), traits.clusterNode])
    super(groups, traits, extent, hiddenBy, { name: 'endpoints-node', key, typeUrl: endpointType, given: [] })
  }

  ofHost(host: string, view: View): readonly Outcome[] {
    return this.groups.hostEndpoints(host, view, this.traits, true)
  }
}

/** Clusters that belong to no service. */
class CommonClusters extends GroupMaker {
  readonly #groups: OutboundGroups
  readonly #traits: Traits

  constructor(groups: OutboundGroups, traits: Traits) {
    super({ id: `clusters-common|${traits.clusterKey}`, typeUrl: clusterType, given: traits.filtersOf.clusters.filters })
    this.#groups = groups
    this.#traits = traits
  }

  make(): Built {
    return { outcomes: this.#groups.commonClusters(this.#traits) }
  }
}

/** Makes the groups of clusters and load assignments. */
export class OutboundGroups {
  readonly #making: Making
  readonly #unpatchedOf = new WeakMap<Traits, Unpatched>()
  /** The resources of the groups, by host. */
  readonly #resources: KeyedResources

  constructor(making: Making) {
    this.#making = making
    this.#resources = new KeyedResources(making.record)
  }

  /** The makers for a class. */
  makersFor(proxy: ProxyClass): GroupMaker[] {
    const { traits } = proxy
    return [
      ...this.#ofEachExtent(this.#extents(proxy, this.#unpatched(traits).hosts), traits, [OutboundClusters, DnsClusters]),
      ...this.assignments(proxy),
      new CommonClusters(this, traits),
    ]
  }

  /** The makers of the load assignments for a class alone. */
  assignments(proxy: ProxyClass): GroupMaker[] {
    const kinds = proxy.traits.clusterNode === undefined ? [LoadAssignments] : [LoadAssignments, NodeAssignments]
    return this.#ofEachExtent(this.#extents(proxy, new Set()), proxy.traits, kinds)
  }

  /** What the namespace has of its own is hidden in the shared group of the same kind. */
  #ofEachExtent(
    extents: readonly Extent[],
    traits: Traits,
    kinds: readonly (typeof OutboundClusters | typeof DnsClusters | typeof LoadAssignments | typeof NodeAssignments)[],
  ): GroupMaker[] {
    const own = extents.find(({ hosts }) => hosts)
    const ownMakers = kinds.map((Kind) => own && new Kind(this, traits, own))
    const others = extents.flatMap((extent) => {
      if (extent === own) return []
      const used = extent.isUnpatched ? this.#unpatched(traits).traits : traits
      return kinds.map((Kind, index) => new Kind(this, used, extent, ownMakers[index]?.id))
    })
    return [...ownMakers.flatMap((maker) => maker ?? []), ...others]
  }

  /** The traits without EnvoyFilters, and the hosts whose clusters EnvoyFilters may change; undefined: those of any host. */
  #unpatched(traits: Traits): Unpatched {
    let known = this.#unpatchedOf.get(traits)
    if (!known) {
      const isPatched = traits.filtersOf.clusters.filters.length > 0
      const hosts = isPatched ? hostsOfPatches({ traits, context: contextOf(traits) }) : nothing
      this.#unpatchedOf.set(traits, (known = { traits: isPatched ? withoutFilters(traits) : traits, hosts: hosts && new Set(hosts) }))
    }
    return known
  }

  /**
   * The extents that the groups of a view are made of. The first is what the namespace sees differently and the hosts that EnvoyFilters
   * change, which are hidden in the shared one.
   */
  #extents({ viewKey: key, traits, gateways, namespace }: ProxyClass, patchedHosts: ReadonlySet<string> | undefined): Extent[] {
    // The resources of these groups do not contain addresses of services.
    const viewKey = plainView(key)
    const isLimited = traits.type === 'router' && !traits.sniDnat && this.#making.snapshot.settings.features.PILOT_FILTER_GATEWAY_CLUSTER_CONFIG
    if (isLimited) return [{ id: JSON.stringify([viewKey.id, namespace, gateways]), viewKey, hosts: undefined, routedBy: { gateways, namespace } }]
    const { difference } = this.#making.view(viewKey)
    if (!difference) return [{ id: viewKey.id, viewKey, hosts: undefined }]
    const shared: Extent = { id: publicView.id, viewKey: publicView, hosts: undefined, isUnpatched: patchedHosts !== undefined }
    const { hosts } = difference
    const isOwn = hosts.length > 0 && viewKey.namespace !== undefined
    if (!isOwn && !patchedHosts?.size) return [shared]
    const all = patchedHosts?.size ? [...new Set([...(isOwn ? hosts : []), ...patchedHosts])].sort() : hosts
    if (!isOwn) return [{ id: 'patched', viewKey: publicView, hosts: all }, shared]
    return [{ id: `of ${viewKey.namespace}`, viewKey: viewOfNamespace(viewKey.namespace ?? ''), hosts: all }, shared]
  }

  /** Clusters that belong to no service. They are hidden from no class. */
  commonClusters(traits: Traits): Outcome[] {
    return patched(traits, contextOf(traits), (context) =>
      makeClusters(commonClusters(this.#making.snapshot, traits), context, addedClusters(context)),
    )
  }

  /** Removes a group. */
  forget(group: string): void {
    this.#resources.forget(group)
  }

  /** Makes the clusters and load assignments of a view's services in advance. Yields the number of bytes made for each service. */
  *prepare(proxy: ProxyClass): Generator<number> {
    const view = this.#making.view(proxy.viewKey)
    const bytes = (outcomes: readonly Outcome[]) =>
      outcomes.reduce((sum, made) => ('slices' in made ? made.slices.reduce((part, { length }) => part + length, sum) : sum), 0)
    for (const state of view.services)
      yield bytes(this.#serviceClusters(state, view, proxy.traits, 'clusters', outboundClusters)) +
        bytes(this.#serviceEndpoints(state, view, proxy.traits))
  }

  /**
   * The clusters of a host. `dns`: only of a service resolved by DNS, whose clusters contain endpoints and depend on the locality of the
   * proxy; otherwise only of other services.
   */
  hostClusters(host: string, view: View, given: Traits, dns: boolean): readonly Outcome[] {
    const state = view.service(host)
    if (!state || (state.service.resolution === 'dns') !== dns) return []
    // The clusters of a host that no EnvoyFilter concerns are those that other proxies have.
    const unpatched = this.#unpatched(given)
    const traits = unpatched.hosts && !unpatched.hosts.has(host) ? unpatched.traits : given
    const made = this.#ofService(state, 'cds', () => this.#serviceClusters(state, view, traits, 'clusters', outboundClusters))
    if (!traits.sniDnat) return made
    return [...made, ...this.#ofService(state, 'cds', () => this.#serviceClusters(state, view, traits, 'sni-clusters', sniDnatClusters))]
  }

  #serviceClusters(state: ServiceState, view: View, traits: Traits, variant: string, make: typeof outboundClusters): readonly Outcome[] {
    const { snapshot, memo } = this.#making
    const rule = view.ruleFor(state.service)
    // Clusters of other resolutions contain no endpoints.
    const open = () =>
      state.service.resolution === 'dns' ? usableEndpoints('cds', view.namespace, state, rule?.subsets ?? [], traits, snapshot) : { state, told: [] }
    return memo.get(
      `${variant}|${traits.clusterKey}|${state.service.resolution === 'dns' ? traits.placeKey + allowedEndpointsKey(view.namespace, state, traits) : ''}`,
      [dependsOnEndpoints(state) ? state : state.service, rule],
      '',
      [rule, accountsOf(state, snapshot).join(), ...traits.filtersOf.clusters.filters],
      () => {
        const usable = open()
        const made = patched(traits, contextOf(traits), (context) => makeClusters(make(usable.state, rule, snapshot, traits), context))
        return [...made, ...usable.told, ...withoutClusters(state.service)]
      },
      allUsable,
    )
  }

  /**
   * Makes the outcomes of a service. When making them fails before there are drafts, the resources that the group has of the service are
   * kept.
   */
  #ofService(state: ServiceState, type: string, make: () => readonly Outcome[]): readonly Outcome[] {
    const there = this.#making.lastGood()
    return contain<readonly Outcome[]>(make, (reason) => {
      const { hostname } = state.service
      const kept = [...there.values()].filter(({ name }) => hostOf(clusterType, name) === hostname)
      const consequence = kept.length > 0 ? consequences.kept : consequences.leftOut
      return [...kept, { problem: { type, resource: hostname, objects: [serviceKey(state.service)], reason, consequence } }]
    })
  }

  /** Makes a group anew, or the part of it that changed since it was made last. */
  hostByHost(maker: OfExtent): Built {
    const { extent } = maker
    const all = this.#hosts(extent)
    const hosts = maker instanceof NodeAssignments ? this.#preferring(all, extent) : all
    return this.#resources.make(maker, hosts, (host) => maker.ofHost(host, this.#making.view(extent.viewKey)))
  }

  #preferring(hosts: readonly string[], { viewKey }: Extent): readonly string[] {
    const { nodeHosts } = this.#making.snapshot
    // The hosts of a namespace follow from this. A group that has none of them reads nothing else of the view, and is made again when it has some.
    void this.#making.view(viewKey).difference
    return hosts.filter((host) => nodeHosts.has(host))
  }

  /** The hosts of an extent. The list stays the same object while its hosts are the same. */
  #hosts({ viewKey, routedBy, hosts }: Extent): readonly string[] {
    if (hosts) return hosts
    if (routedBy) return gatewayHosts(this.#making.snapshot, routedBy)
    const listed = () => {
      const [first, ...others] = this.#making.view(viewKey).egress.map((egress) => egress.hosts)
      return others.length === 0 ? (first ?? nothing) : [...new Set([first ?? nothing, ...others].flat())]
    }
    return this.#making.derived(`hosts of resources|${viewKey.id}`, listed, sameItems)
  }

  /** The load assignments of a host. `ofNode`: only of a service whose callers prefer endpoints on their own node; otherwise only of others. */
  hostEndpoints(host: string, view: View, traits: Traits, ofNode: boolean): readonly Outcome[] {
    // A change of endpoints is no change of the service, whose other readers it does not concern.
    this.#making.snapshot.endpoints.get(host)
    const state = view.service(host)
    if (!state || (state.service.distribution === 'PreferSameNode') !== ofNode) return []
    return this.#ofService(state, 'eds', () => this.#serviceEndpoints(state, view, traits))
  }

  #serviceEndpoints(state: ServiceState, view: View, traits: Traits): readonly Outcome[] {
    const { snapshot, memo } = this.#making
    const { service } = state
    if (
      service.resolution === 'dns' ||
      (service.resolution === 'passthrough' && traits.type === 'sidecar' && !snapshot.settings.features.PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES)
    )
      return []
    const rule = view.ruleFor(service)
    const place = { viewer: view.namespace, traits }
    const make = () => loadAssignments(state, rule, place, this.#making)
    return memo.get(`endpoints|${placeKeyOf(state, rule, place, snapshot)}`, [state, rule], '', [rule], make, allUsable)
  }
}

const endpointKey = ({ type, sniDnat, isProxyless, placeKey }: Traits): string => `${type}|${sniDnat}|${isProxyless}|${placeKey}`

const contextOf = (traits: Traits) => (traits.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND')

/** Makes clusters with patches applied (merges and removals), and those that patches add. */
function makeClusters(drafts: readonly Draft<Cluster>[], context: PatchContext, added: readonly Draft<Cluster>[] = []): Outcome[] {
  return withAdded(makeAll(ClusterSchema, 'cds', drafts, clusterPatcher(context)), ClusterSchema, 'cds', added)
}

/** Whether the clusters of a service contain its endpoints, or names taken from them. */
function dependsOnEndpoints(state: ServiceState): boolean {
  return state.service.resolution === 'dns' || state.service.resolution === 'passthrough'
}

const nothing: readonly never[] = []
