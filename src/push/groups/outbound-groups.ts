/**
 * Groups of clusters and load assignments for upstream services. Those of the shared view are made once for all proxies. A namespace that
 * sees some hosts differently has these in a group of its own, and they are hidden in the shared group. The services that a Sidecar imports
 * are one group.
 */
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { consequences, contain } from '../../model/faults.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import { plainView, publicView, type View, type ViewKey, viewOfNamespace } from '../../snapshot/view.ts'
import { gatewayHosts } from '../../xds/clusters/gateway-hosts.ts'
import { accountsOf, commonClusters, outboundClusters, sniDnatClusters } from '../../xds/clusters/outbound.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { allowedEndpointsKey } from '../../xds/endpoints/own-machine.ts'
import { addedClusters, clusterPatcher } from '../../xds/envoy-filter/clusters.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { hostOf } from '../../xds/names.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'
import type { ClassGroup } from '../classes/served-class.ts'
import { loadAssignments, placeKeyOf } from './load-assignments.ts'
import { allUsable, type GroupSpec, type Making, patched, withAdded } from './making.ts'
import { ResourceGroup } from './resource-group.ts'
import { usableEndpoints, withoutClusters } from './usable-endpoints.ts'

/** The services of a view that one group is made of. */
interface Extent {
  /** Equal for equal extents. It is part of the ids of their groups. */
  readonly id: string
  readonly viewKey: ViewKey
  /** The hosts. Undefined: all hosts of the view. */
  readonly hosts: readonly string[] | undefined
  /** The gateways to whose destinations the hosts are limited, and the namespace of their proxy. */
  readonly routedBy?: Pick<ProxyClass, 'gateways' | 'namespace'>
}

/** A group of load assignments that can be updated host by host. */
interface EndpointGroup {
  readonly extent: Extent
  readonly traits: Traits
}

/** Makes the groups of clusters and load assignments. */
export class OutboundGroups {
  readonly #making: Making
  readonly #endpointGroups = new Map<string, EndpointGroup>()

  constructor(making: Making) {
    this.#making = making
  }

  /** The groups of a class. */
  specs(proxy: ProxyClass): GroupSpec[] {
    const { traits } = proxy
    const { filters } = traits.filtersOf.clusters
    const extents = this.#extents(proxy)
    const own = extents.find(({ hosts }) => hosts)
    const kinds = [
      { name: 'clusters-out', key: traits.clusterKey, given: filters, typeUrl: clusterType, make: (of: Extent) => this.#clusters(of, traits, false) },
      {
        name: 'clusters-dns',
        key: `${traits.clusterKey}|${traits.placeKey}`,
        given: filters,
        typeUrl: clusterType,
        make: (of: Extent) => this.#clusters(of, traits, true),
      },
      // EnvoyFilters do not apply to load assignments, so classes with different filters share this group.
      { name: 'endpoints', key: endpointKey(traits), given: [], typeUrl: endpointType, make: (of: Extent) => this.#endpoints(of, traits) },
    ]
    for (const extent of extents) this.#endpointGroups.set(`endpoints|${extent.id}|${endpointKey(traits)}`, { extent, traits })
    const specs = extents.flatMap((extent) =>
      kinds.map(({ name, key, given, typeUrl, make }): GroupSpec => {
        const build = () => ({ outcomes: make(extent), ...(extent.hosts ? { hide: extent.hosts } : {}) })
        const hiddenBy = own && own !== extent ? { hiddenBy: `${name}|${own.id}|${key}` } : {}
        return { id: `${name}|${extent.id}|${key}`, given, typeUrl, ...hiddenBy, build }
      }),
    )
    return [...specs, this.#commonClusters(traits)]
  }

  /**
   * The extents that the groups of a view are made of. The first is what the namespace sees differently, which is hidden in the shared one.
   */
  #extents({ viewKey: key, traits, gateways, namespace }: ProxyClass): Extent[] {
    // The resources of these groups do not contain addresses of services.
    const viewKey = plainView(key)
    const isLimited = traits.type === 'router' && !traits.sniDnat && this.#making.snapshot.settings.features.PILOT_FILTER_GATEWAY_CLUSTER_CONFIG
    if (isLimited) return [{ id: JSON.stringify([viewKey.id, namespace, gateways]), viewKey, hosts: undefined, routedBy: { gateways, namespace } }]
    const { difference } = this.#making.view(viewKey)
    if (!difference) return [{ id: viewKey.id, viewKey, hosts: undefined }]
    const shared: Extent = { id: publicView.id, viewKey: publicView, hosts: undefined }
    const { hosts } = difference
    if (hosts.length === 0 || viewKey.namespace === undefined) return [shared]
    return [{ id: `of ${viewKey.namespace}`, viewKey: viewOfNamespace(viewKey.namespace), hosts }, shared]
  }

  /** Clusters that belong to no service. They are hidden from no class. */
  #commonClusters(traits: Traits): GroupSpec {
    const build = () => ({
      outcomes: patched(traits, contextOf(traits), (context) =>
        makeClusters(commonClusters(this.#making.snapshot, traits), context, addedClusters(context)),
      ),
    })
    return { id: `clusters-common|${traits.clusterKey}`, given: traits.filtersOf.clusters.filters, typeUrl: clusterType, build }
  }

  /** Groups that contain load assignments of a host and are updated when its endpoints change: those that have looked up its services. */
  endpointGroups(host: string): ClassGroup[] {
    const askers = [...this.#making.snapshot.services.askers(host)]
    return askers.filter((owner): owner is ClassGroup => owner instanceof ResourceGroup).filter(({ id }) => this.#endpointGroups.has(id))
  }

  /** The load assignments of one host in a group. */
  endpointsOf(host: string, group: string): readonly Outcome[] {
    const known = this.#endpointGroups.get(group)
    if (!known) return []
    const view = this.#making.view(known.extent.viewKey)
    const state = view.service(host)
    return state ? this.#serviceEndpoints(state, view, known.traits) : []
  }

  /** Removes a group. */
  forget(group: string): void {
    this.#endpointGroups.delete(group)
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

  #states({ viewKey, routedBy, hosts = routedBy && gatewayHosts(this.#making.snapshot, routedBy) }: Extent): {
    view: View
    states: readonly ServiceState[]
  } {
    const view = this.#making.view(viewKey)
    return { view, states: hosts ? hosts.flatMap((host) => view.service(host) ?? []) : view.services }
  }

  /**
   * `dns`: only services resolved by DNS, whose clusters contain endpoints and depend on the locality of the proxy; otherwise all other
   * services.
   */
  #clusters(extent: Extent, traits: Traits, dns: boolean): Outcome[] {
    const { view, states } = this.#states(extent)
    const services = states.filter(({ service }) => (service.resolution === 'dns') === dns)
    const made = this.#ofEach(services, 'cds', (state) => this.#serviceClusters(state, view, traits, 'clusters', outboundClusters))
    if (!traits.sniDnat) return made
    return [...made, ...this.#ofEach(services, 'cds', (state) => this.#serviceClusters(state, view, traits, 'sni-clusters', sniDnatClusters))]
  }

  #serviceClusters(state: ServiceState, view: View, traits: Traits, variant: string, make: typeof outboundClusters): readonly Outcome[] {
    const { snapshot, memo } = this.#making
    const rule = view.ruleFor(state.service)
    // Clusters of other resolutions contain no endpoints.
    const open = () => (state.service.resolution === 'dns' ? usableEndpoints('cds', view.namespace, state, traits, snapshot) : { state, told: [] })
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
   * Makes the outcomes of each service. When making a service fails before there are drafts, the resources that the group has of it are
   * kept.
   */
  #ofEach(services: readonly ServiceState[], type: string, make: (state: ServiceState) => readonly Outcome[]): Outcome[] {
    const there = this.#making.lastGood()
    return services.flatMap((state) =>
      contain(
        () => [...make(state)],
        (reason) => {
          const { hostname } = state.service
          const kept = [...there.values()].filter(({ name }) => hostOf(clusterType, name) === hostname)
          const consequence = kept.length > 0 ? consequences.kept : consequences.leftOut
          return [...kept, { problem: { type, resource: hostname, objects: [serviceKey(state.service)], reason, consequence } }]
        },
      ),
    )
  }

  #endpoints(extent: Extent, traits: Traits): Outcome[] {
    const { view, states } = this.#states(extent)
    return this.#ofEach(states, 'eds', (state) => this.#serviceEndpoints(state, view, traits))
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
