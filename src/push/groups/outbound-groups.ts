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
import { addedClusters, clusterPatcher } from '../../xds/envoy-filter/clusters.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { hostOf } from '../../xds/names.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'
import type { Collection } from '../dependencies/dependencies.ts'
import { loadAssignments, placeKeyOf } from './load-assignments.ts'
import { allUsable, type Built, type GroupSpec, type Making, patched, withAdded } from './making.ts'
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

/** The load assignments of a group by host, each with a record of what was read to make it. */
interface HostAssignments {
  readonly cells: Collection<readonly Outcome[]>
  /** Those that the group has. */
  readonly stored: Map<string, readonly Outcome[]>
  /** The hosts that it was made of; undefined until it was. */
  hosts: readonly string[] | undefined
}

/** Makes the groups of clusters and load assignments. */
export class OutboundGroups {
  readonly #making: Making
  /** By group of load assignments. */
  readonly #assignments = new Map<string, HostAssignments>()

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
      {
        name: 'clusters-out',
        key: traits.clusterKey,
        given: filters,
        typeUrl: clusterType,
        make: (of: Extent) => ({ outcomes: this.#clusters(of, traits, false) }),
      },
      {
        name: 'clusters-dns',
        key: `${traits.clusterKey}|${traits.placeKey}`,
        given: filters,
        typeUrl: clusterType,
        make: (of: Extent) => ({ outcomes: this.#clusters(of, traits, true) }),
      },
      // EnvoyFilters do not apply to load assignments, so classes with different filters share this group.
      {
        name: 'endpoints',
        key: endpointKey(traits),
        given: [],
        typeUrl: endpointType,
        make: (of: Extent, id: string) => this.#endpoints(id, of, traits),
      },
    ]
    const specs = extents.flatMap((extent) =>
      kinds.map(({ name, key, given, typeUrl, make }): GroupSpec => {
        const id = `${name}|${extent.id}|${key}`
        const build = (): Built => ({ ...make(extent, id), ...(extent.hosts ? { hide: extent.hosts } : {}) })
        const hiddenBy = own && own !== extent ? { hiddenBy: `${name}|${own.id}|${key}` } : {}
        return { id, given, typeUrl, ...hiddenBy, build }
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

  /** Removes a group. */
  forget(group: string): void {
    this.#assignments.delete(group)
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

  #endpoints(id: string, extent: Extent, traits: Traits): Built {
    const group = this.#assignments.get(id) ?? { cells: this.#making.record.collection(), stored: new Map(), hosts: undefined }
    // If this fails, the next attempt begins anew.
    this.#assignments.delete(id)
    try {
      return this.#changedEndpoints(id, group, extent, traits)
    } catch (error) {
      group.cells.keep(new Set())
      throw error
    }
  }

  /** Makes the load assignments of the hosts that are new in a group, and of those of which something that was read has changed. */
  #changedEndpoints(id: string, group: HostAssignments, extent: Extent, traits: Traits): Built {
    const { cells, stored } = group
    const hosts = this.#hosts(extent)
    const isSame = group.hosts === hosts
    const wanted = isSame ? undefined : new Set(hosts)
    const redone = isSame ? [...cells.outdated] : hosts.filter((host) => !(cells.isCurrent(host) && stored.has(host)))
    const made = new Map(redone.map((host) => [host, cells.get(host, () => this.#hostEndpoints(host, extent.viewKey, traits)).value]))
    const left = wanted ? [...stored.keys()].filter((host) => !wanted.has(host)) : []
    if (wanted) cells.keep(wanted)
    cells.read()
    const outcomes = [...made.values()].flat()
    const now = new Set(outcomes.map(nameOf))
    const before = [...redone, ...left].flatMap((host) => (stored.get(host) ?? []).map(nameOf))
    const finish = () => {
      for (const [host, of] of made) stored.set(host, of)
      for (const host of left) stored.delete(host)
      this.#assignments.set(id, { cells, stored, hosts })
    }
    if (!group.hosts) return { outcomes, stored: finish }
    const remade = new Set([...redone, ...left, ...before, ...now])
    return { outcomes, isPart: true, gone: before.filter((name) => !now.has(name)), remade, stored: finish }
  }

  /** The hosts of an extent. The list stays the same object while its hosts are the same. */
  #hosts({ viewKey, routedBy, hosts }: Extent): readonly string[] {
    if (hosts) return hosts
    if (routedBy) return gatewayHosts(this.#making.snapshot, routedBy)
    const listed = () => [...new Set(this.#making.view(viewKey).egress.flatMap((egress) => egress.hosts))]
    return this.#making.derived(`hosts of endpoints|${viewKey.id}`, listed, sameItems)
  }

  #hostEndpoints(host: string, viewKey: ViewKey, traits: Traits): readonly Outcome[] {
    const view = this.#making.view(viewKey)
    // A change of endpoints is no change of the service, whose other readers it does not concern.
    this.#making.snapshot.endpoints.get(host)
    const state = view.service(host)
    return state ? this.#ofEach([state], 'eds', () => this.#serviceEndpoints(state, view, traits)) : []
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

const nameOf = (outcome: Outcome): string =>
  'slices' in outcome ? outcome.name : 'problem' in outcome ? outcome.problem.resource : outcome.conflict.listener

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
