/**
 * Makes the groups of resources that classes need, for one snapshot after another. Each group knows which kinds of objects
 * it cannot depend on; everything else makes it look again at its inputs, and what was made from the same inputs is kept.
 */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteConfigurationSchema } from '../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { configKey } from '../config/kinds.ts'
import { jwtRules, keySource } from '../security/authentication/jwt-filter.ts'
import { authorizerFacts, filtersOf, type PolicyFilters } from '../security/authorization/filters.ts'
import type { MergedRule } from '../snapshot/destination-rules.ts'
import { compare } from '../snapshot/objects.ts'
import { policiesFor, type WorkloadPolicies } from '../snapshot/policies.ts'
import type { Changes, MeshSnapshot, ServiceState } from '../snapshot/snapshot.ts'
import { buildView, type View, type ViewKey } from '../snapshot/view.ts'
import { accountsOf, blackHoleCluster, outboundClusters, passthroughCluster, sniDnatClusters } from '../xds/clusters/outbound.ts'
import { policyFor } from '../xds/clusters/traffic-policy.ts'
import { loadAssignment } from '../xds/endpoints/load-assignment.ts'
import { dependsOnLocality } from '../xds/endpoints/locality.ts'
import { gatewayListeners, gatewayRoutes } from '../xds/listeners/gateway.ts'
import { inboundClusters, inboundListeners, inboundPorts } from '../xds/listeners/inbound.ts'
import { type ListenerConflict, outboundListeners } from '../xds/listeners/outbound.ts'
import { outboundCluster, sniCluster } from '../xds/names.ts'
import { extensionConfigs, type PatchContext, patchClusters, patchListeners, patchRoutes } from '../xds/patches/apply.ts'
import { InvalidResource } from '../xds/resource-check.ts'
import type { GroupStore } from '../xds/slab/group-store.ts'
import { encodeResource, isUsable, type Resource } from '../xds/slab/resource.ts'
import type { Traits } from '../xds/traits.ts'
import { clusterType, endpointType, extensionConfigType, listenerType, routeType, virtualHostType } from '../xds/type-urls.ts'
import type { Faults } from './faults.ts'
import { Memo } from './memo.ts'
import type { ProxyClass } from './proxy-class.ts'
import { bucketOf, buckets, SidecarRouteGroup } from './sidecar-route-group.ts'

const workloads = ['WorkloadEntry', 'WorkloadGroup']
/** What the requests of a workload must bring: it touches listeners only. */
const requestPolicies = ['AuthorizationPolicy', 'RequestAuthentication', 'KeySets']
const policies = [...requestPolicies, 'PeerAuthentication']

/** Kinds that alone never touch a group of the type (discovery behaviour 1.6); an unknown kind touches everything. */
const untouchedBy: Readonly<Record<string, ReadonlySet<string>>> = {
  'clusters-outbound': new Set(['Gateway', 'VirtualService', ...workloads, ...requestPolicies]),
  'clusters-inbound': new Set(['Gateway', 'VirtualService', ...workloads, ...policies]),
  endpoints: new Set(['Gateway', 'VirtualService', ...workloads, ...requestPolicies]),
  'listeners-outbound': new Set(['Gateway', 'DestinationRule', ...workloads, ...policies]),
  'listeners-inbound': new Set(['Gateway', 'DestinationRule', 'VirtualService', ...workloads]),
  'listeners-gateway': new Set(['DestinationRule', 'Sidecar', ...workloads, 'PeerAuthentication']),
  'routes-outbound': new Set(['Gateway', ...workloads, ...policies]),
  'routes-gateway': new Set(['Sidecar', ...workloads, ...policies]),
  extensions: new Set(['Service', 'Gateway', 'VirtualService', 'DestinationRule', 'Sidecar', 'Mesh', ...workloads, ...policies]),
}

/** Types whose resources outlive their reason for a moment: routes that still name them must go first. */
const lingers = new Set([clusterType, endpointType])

/** Kinds that views are made from. */
const viewKinds = ['Service', 'VirtualService', 'DestinationRule', 'Sidecar', 'Mesh']

interface GroupSpec {
  /** The services in it follow a Sidecar, whose scope takes in what visible VirtualServices send to. */
  readonly scoped?: boolean
  readonly kind: keyof typeof untouchedBy
  readonly typeUrl: string
  readonly build: () => Iterable<Resource>
}

/** Maker and owner of the groups. */
export class Generation {
  readonly #groups: GroupStore
  readonly #faults: Faults
  readonly #memo = new Memo()
  readonly #views = new Map<string, View>()
  readonly #specs = new Map<string, GroupSpec>()
  readonly #endpointGroups = new Map<string, { viewKey: ViewKey; traits: Traits }>()
  /** Tables of routes, and the groups that are made from them. */
  readonly #routeGroups = new Map<string, { readonly group: SidecarRouteGroup; readonly users: Set<string> }>()
  #built = new Set<string>()
  /** The group that is being built; its resources are the last good state of what fails now. */
  #building = ''
  #snapshot: MeshSnapshot
  #conflicts: readonly ListenerConflict[] = []

  constructor(snapshot: MeshSnapshot, groups: GroupStore, faults: Faults) {
    this.#snapshot = snapshot
    this.#groups = groups
    this.#faults = faults
  }

  /** Things made and found in memory since the start. */
  get memo(): { made: number; found: number } {
    return this.#memo
  }

  /** Conflicts between listeners of the shared view. */
  get conflicts(): readonly ListenerConflict[] {
    return this.#conflicts
  }

  /** Turns to a new snapshot. Groups that the changes may touch are built again when a class asks for them. */
  advance(snapshot: MeshSnapshot, changes: Changes): void {
    this.#snapshot = snapshot
    if (changes.endpointHosts.size > 0 || viewKinds.some((kind) => changes.kinds.has(kind))) this.#views.clear()
    for (const id of this.#built) {
      const spec = this.#specs.get(id)
      const untouched = spec && (untouchedBy[spec.kind] as ReadonlySet<string>)
      const touched = [...changes.kinds].some((kind) => !untouched?.has(kind) || (spec?.scoped && kind === 'VirtualService'))
      if (touched) this.#built.delete(id)
    }
    if (changes.endpointHosts.size > 0) this.#refreshEndpoints(changes.endpointHosts)
  }

  /** The groups of a class by type URL, every one built for the present snapshot. */
  groupsFor(proxy: ProxyClass): Record<string, string[]> {
    const groups: Record<string, string[]> = {}
    for (const [id, spec] of proxy.traits.type === 'router' ? this.#routerGroups(proxy) : this.#sidecarGroups(proxy)) {
      this.#specs.set(id, spec)
      const ids = groups[spec.typeUrl]
      if (ids) ids.push(id)
      else groups[spec.typeUrl] = [id]
      if (this.#built.has(id)) continue
      this.#built.add(id)
      this.#building = id
      this.#rebuild(id, spec)
    }
    return groups
  }

  /** Makes a group anew. If it cannot be made at all, it is reported and stays as it was. */
  #rebuild(id: string, spec: GroupSpec): void {
    try {
      this.#groups.replace(id, spec.build(), lingers.has(spec.typeUrl))
      this.#faults.clear('group', id)
    } catch (error) {
      if (!(error instanceof InvalidResource)) throw error
      this.#faults.add({ type: 'group', resource: id, objects: [], reason: error.message })
      if (!this.#groups.has(id)) this.#groups.replace(id, [])
    }
  }

  /** Forgets groups that no class uses. */
  retain(used: ReadonlySet<string>): void {
    for (const id of [...this.#groups.ids()]) {
      if (used.has(id)) continue
      this.#groups.retire(id)
      this.#specs.delete(id)
      this.#endpointGroups.delete(id)
      this.#built.delete(id)
    }
    for (const [tables, groups] of this.#routeGroups) {
      for (const id of groups.users) if (!used.has(id)) groups.users.delete(id)
      if (groups.users.size === 0) this.#routeGroups.delete(tables)
    }
  }

  /** The view of a class in the present snapshot. */
  view(key: ViewKey): View {
    let view = this.#views.get(key.id)
    if (!view) this.#views.set(key.id, (view = buildView(this.#snapshot, key)))
    return view
  }

  #sidecarGroups(proxy: ProxyClass): [string, GroupSpec][] {
    const { traits, viewKey } = proxy
    const caller = `${JSON.stringify(proxy.sourceLabels)}|${this.#namespaceIfMatched(proxy)}`
    const tables = `${viewKey.id}|${traits.routeKey}|${caller}`
    return [
      ...this.#outboundGroups(proxy),
      [`clusters-in|${proxy.id}`, { kind: 'clusters-inbound', typeUrl: clusterType, build: () => this.#inboundClusters(proxy) }],
      [
        `listeners-out|${viewKey.id}|${traits.listenerKey}|${caller}`,
        { kind: 'listeners-outbound', typeUrl: listenerType, build: () => this.#outboundListeners(proxy) },
      ],
      [`listeners-in|${proxy.id}`, { kind: 'listeners-inbound', typeUrl: listenerType, build: () => this.#inboundListeners(proxy) }],
      [`routes-out|${tables}|${proxy.namespace}`, { kind: 'routes-outbound', typeUrl: routeType, build: () => this.#sidecarRoutes(proxy, tables) }],
      ...(traits.takesVirtualHosts ? this.#virtualHostGroups(proxy, tables) : []),
      ...this.#extensionGroups(proxy),
    ]
  }

  #routerGroups(proxy: ProxyClass): [string, GroupSpec][] {
    return [
      ...this.#outboundGroups(proxy),
      [`listeners-gw|${proxy.id}`, { kind: 'listeners-gateway', typeUrl: listenerType, build: () => this.#gatewayListeners(proxy) }],
      [`routes-gw|${proxy.id}`, { kind: 'routes-gateway', typeUrl: routeType, build: () => this.#gatewayRoutes(proxy) }],
      ...this.#extensionGroups(proxy),
    ]
  }

  #outboundGroups(proxy: ProxyClass): [string, GroupSpec][] {
    const { traits, viewKey } = proxy
    const { carriesEndpoints } = this.view(viewKey)
    const endpoints = `endpoints|${viewKey.id}|${traits.type}|${traits.sniDnat}|${traits.placeKey}`
    this.#endpointGroups.set(endpoints, { viewKey, traits })
    const scoped = viewKey.sidecar !== undefined
    return [
      [
        `clusters-out|${viewKey.id}|${traits.clusterKey}|${carriesEndpoints ? traits.placeKey : ''}`,
        { kind: 'clusters-outbound', scoped, typeUrl: clusterType, build: () => this.#outboundClusters(proxy) },
      ],
      [endpoints, { kind: 'endpoints', scoped, typeUrl: endpointType, build: () => this.#endpoints(proxy) }],
    ]
  }

  #extensionGroups(proxy: ProxyClass): [string, GroupSpec][] {
    if (proxy.traits.filters.length === 0) return []
    return [
      [
        `extensions|${proxy.traits.filterKey}`,
        { kind: 'extensions', typeUrl: extensionConfigType, build: () => extensionConfigs(this.#patchContext(proxy.traits, 'extensions')) },
      ],
    ]
  }

  /**
   * Makes, ahead of need, what a sidecar's services turn into; its first group then finds most of it in memory. Yields the
   * bytes made for each service, so that the caller can stop and go on between services.
   */
  *prepare(proxy: ProxyClass): Generator<number> {
    const view = this.view(proxy.viewKey)
    const bytes = (resources: readonly Resource[]) =>
      resources.reduce((sum, { slices }) => slices.reduce((part, { length }) => part + length, sum), 0)
    for (const state of view.services) {
      yield bytes(this.#serviceClusters(state, view, proxy.traits, 'clusters', outboundClusters)) +
        bytes(this.#serviceEndpoints(state, view, proxy.traits))
    }
    const routes = new SidecarRouteGroup(this.#memo, this.#faults)
    yield* routes.prepare(view, this.#snapshot, proxy, this.#patchContext(proxy.traits, 'SIDECAR_OUTBOUND'))
  }

  #serviceClusters(state: ServiceState, view: View, traits: Traits, variant: string, make: typeof outboundClusters): readonly Resource[] {
    const snapshot = this.#snapshot
    const rule = view.ruleFor(state.service)
    const context = this.#patchContext(traits, traits.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND')
    return this.#memo.get(
      dependsOnEndpoints(state) ? state : state.service,
      `${variant}|${traits.clusterKey}|${state.service.resolution === 'dns' ? traits.placeKey : ''}|${ruleId(rule)}|${accountsOf(state, snapshot).join()}`,
      [rule, snapshot.mesh, snapshot.networks, snapshot.policies.peers, ...traits.filters],
      () => this.#encodeAll(ClusterSchema, patchClusters(make(state, rule, snapshot, traits), context), 'cds', () => objectsOf(state, rule)),
      allUsable,
    )
  }

  #outboundClusters(proxy: ProxyClass): Resource[] {
    const { traits } = proxy
    const view = this.view(proxy.viewKey)
    const snapshot = this.#snapshot
    const context = this.#patchContext(traits, traits.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND')
    const resources = view.services.flatMap((state) => this.#serviceClusters(state, view, traits, 'clusters', outboundClusters))
    if (traits.sniDnat)
      resources.push(...view.services.flatMap((state) => this.#serviceClusters(state, view, traits, 'sni-clusters', sniDnatClusters)))
    const base = [blackHoleCluster(snapshot), ...(traits.type === 'sidecar' ? [passthroughCluster(snapshot)] : [])]
    resources.push(...this.#encodeAll(ClusterSchema, patchClusters(base, context, true), 'cds', () => []))
    return resources
  }

  #endpoints(proxy: ProxyClass): Resource[] {
    const view = this.view(proxy.viewKey)
    return view.services.flatMap((state) => this.#serviceEndpoints(state, view, proxy.traits))
  }

  #serviceEndpoints(state: ServiceState, view: View, traits: Traits): readonly Resource[] {
    const snapshot = this.#snapshot
    const { service } = state
    if (
      service.resolution === 'dns' ||
      (service.resolution === 'passthrough' && traits.type === 'sidecar' && !snapshot.settings.features.PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES)
    )
      return []
    const rule = view.ruleFor(service)
    const subsets = [undefined, ...(rule?.subsets ?? [])]
    const local = service.ports.some((port) => subsets.some((subset) => dependsOnLocality(policyFor(rule, subset, port.number), snapshot)))
    const place = `${traits.type}|${traits.network}|${traits.networkView ? [...traits.networkView].join() : '*'}|${local ? traits.locality : ''}|${traits.sniDnat}`
    return this.#memo.get(
      state,
      `endpoints|${place}|${ruleId(rule)}`,
      [rule, snapshot.mesh, snapshot.networks, snapshot.policies.peers],
      () => {
        const names = traits.sniDnat ? [outboundCluster, sniCluster] : [outboundCluster]
        const assignments = service.ports
          .filter((port) => port.protocol !== 'udp')
          .flatMap((port) =>
            subsets.flatMap((subset) =>
              names.map((nameOf) =>
                loadAssignment(
                  nameOf(port.number, subset?.name ?? '', service.hostname),
                  state,
                  port,
                  subset,
                  policyFor(rule, subset, port.number),
                  snapshot,
                  traits,
                ),
              ),
            ),
          )
        return this.#encodeAll(
          ClusterLoadAssignmentSchema,
          assignments,
          'eds',
          () => objectsOf(state, rule),
          (assignment) => assignment.clusterName,
        )
      },
      allUsable,
    )
  }

  /** The short way of an endpoint change: only the load assignments of these hosts, in every group that has them and is not built anew. */
  #refreshEndpoints(hosts: ReadonlySet<string>): void {
    for (const [id, { viewKey, traits }] of this.#endpointGroups) {
      if (!this.#built.has(id)) continue
      const view = this.view(viewKey)
      this.#building = id
      for (const host of hosts) {
        const state = view.byHost.get(host)
        if (state) this.#groups.update(id, this.#serviceEndpoints(state, view, traits))
      }
    }
  }

  #inboundClusters(proxy: ProxyClass): Resource[] {
    return this.#inbound('clusters-in', proxy, [], (view) => {
      const ports = inboundPorts(view, proxy.instances, proxy.traits, proxy.address)
      const clusters = inboundClusters(ports, view, this.#snapshot, proxy.traits)
      return this.#encodeAll(ClusterSchema, patchClusters(clusters, this.#patchContext(proxy.traits, 'SIDECAR_INBOUND'), true), 'cds', () =>
        instanceObjects(proxy),
      )
    })
  }

  /**
   * What a workload has of its own depends on its own services, the rules for them and its Sidecar, and on what else is `used`;
   * the class is another object when the services are.
   */
  #inbound(variant: string, proxy: ProxyClass, used: readonly unknown[], make: (view: View) => readonly Resource[]): Resource[] {
    const view = this.view(proxy.viewKey)
    const rules = proxy.instances.map(({ service }) => view.ruleFor(service))
    const inputs = [this.#snapshot.mesh, view.sidecar, ...rules, ...proxy.traits.filters, ...used]
    return [...this.#memo.get(proxy, variant, inputs, () => make(view), allUsable)]
  }

  #policies(proxy: ProxyClass): WorkloadPolicies {
    return policiesFor(this.#snapshot.policies, this.#snapshot.mesh.rootNamespace, proxy)
  }

  /** What enforces policies; what cannot be expressed is reported with the policies it came from. */
  #policyFilters(policies: WorkloadPolicies): PolicyFilters {
    const objects = [...policies.requests, ...policies.authorization].map(configKey)
    const resource = objects.join()
    let reason: string | undefined
    const filters = filtersOf(policies, this.#snapshot, (found) => {
      reason = found
    })
    if (reason === undefined) this.#faults.clear('policy', resource)
    else this.#faults.add({ type: 'policy', resource, objects, reason })
    return filters
  }

  #keySets({ requests }: WorkloadPolicies): unknown[] {
    return jwtRules(requests).map((rule) => this.#snapshot.keySets.get(keySource(rule) ?? ''))
  }

  #inboundListeners(proxy: ProxyClass): Resource[] {
    const policies = this.#policies(proxy)
    const used = [...Object.values(policies).flat(), ...this.#keySets(policies), authorizerFacts(policies, this.#snapshot)]
    return this.#inbound('listeners-in', proxy, used, (view) => {
      const ports = inboundPorts(view, proxy.instances, proxy.traits, proxy.address)
      const listeners = inboundListeners(ports, policies, this.#policyFilters(policies), this.#snapshot, proxy.traits)
      return this.#encodeAll(ListenerSchema, patchListeners(listeners, this.#patchContext(proxy.traits, 'SIDECAR_INBOUND')), 'lds', () =>
        instanceObjects(proxy),
      )
    })
  }

  #outboundListeners(proxy: ProxyClass): Resource[] {
    const view = this.view(proxy.viewKey)
    const { listeners, conflicts } = outboundListeners({
      view,
      snapshot: this.#snapshot,
      traits: proxy.traits,
      sourceLabels: proxy.sourceLabels,
      namespace: proxy.namespace,
    })
    if (view.id === 'public') this.#conflicts = conflicts
    return this.#encodeAll(ListenerSchema, patchListeners(listeners, this.#patchContext(proxy.traits, 'SIDECAR_OUTBOUND')), 'lds', () => [])
  }

  /** Virtual hosts as resources of their own: those of strangers in groups that all namespaces share, the own ones in a group of the namespace. */
  #virtualHostGroups(proxy: ProxyClass, tables: string): [string, GroupSpec][] {
    const home = bucketOf(proxy.namespace)
    return buckets.map((bucket) => {
      const own = bucket === home
      const build = () => {
        const { group, context } = this.#routeGroup(proxy, tables)
        return group.hosts(bucket, own, this.view(proxy.viewKey), this.#snapshot, proxy, context)
      }
      return [`vhosts|${tables}|${own ? `of ${proxy.namespace}` : bucket}`, { kind: 'routes-outbound', typeUrl: virtualHostType, build }]
    })
  }

  #sidecarRoutes(proxy: ProxyClass, id: string): Resource[] {
    const { group, context } = this.#routeGroup(proxy, id)
    return group.resources(this.view(proxy.viewKey), this.#snapshot, proxy, context)
  }

  /** The routes of a set of tables, for the group that is being built. */
  #routeGroup(proxy: ProxyClass, id: string): { group: SidecarRouteGroup; context: PatchContext } {
    let tables = this.#routeGroups.get(id)
    if (!tables) this.#routeGroups.set(id, (tables = { group: new SidecarRouteGroup(this.#memo, this.#faults), users: new Set() }))
    tables.users.add(this.#building)
    return { group: tables.group, context: this.#patchContext(proxy.traits, 'SIDECAR_OUTBOUND') }
  }

  #gatewayListeners(proxy: ProxyClass): Resource[] {
    const { listeners, rejected } = gatewayListeners(proxy, this.view(proxy.viewKey), this.#policyFilters(this.#policies(proxy)), this.#snapshot)
    for (const { gateway, reason } of rejected) this.#faults.add({ type: 'gateway', resource: gateway, objects: [`Gateway/${gateway}`], reason })
    return this.#encodeAll(ListenerSchema, patchListeners(listeners, this.#patchContext(proxy.traits, 'GATEWAY')), 'lds', () =>
      proxy.gateways.map((name) => `Gateway/${name}`),
    )
  }

  #gatewayRoutes(proxy: ProxyClass): Resource[] {
    const routes = gatewayRoutes(proxy, this.view(proxy.viewKey), this.#snapshot)
    return this.#encodeAll(RouteConfigurationSchema, patchRoutes(routes, this.#patchContext(proxy.traits, 'GATEWAY')), 'rds', () =>
      proxy.gateways.map((name) => `Gateway/${name}`),
    )
  }

  #patchContext(traits: Traits, context: PatchContext['context']): PatchContext {
    return { context, traits, report: (object, reason) => this.#faults.add({ type: 'patch', resource: object, objects: [object], reason }) }
  }

  /** Namespace of the caller where some match looks at it, else nothing: then all namespaces can share. */
  #namespaceIfMatched(proxy: ProxyClass): string {
    return this.#snapshot.virtualServices.matchesCallers ? proxy.namespace : ''
  }

  /** Encodes messages. One that Envoy would refuse is reported and stays at its last good state; the others are not affected. */
  #encodeAll<Schema extends DescMessage>(
    schema: Schema,
    messages: readonly MessageShape<Schema>[],
    type: string,
    objects: () => readonly string[],
    nameOf: (message: MessageShape<Schema>) => string = (message) => (message as unknown as { name: string }).name,
  ): Resource[] {
    const resources: Resource[] = []
    for (const message of messages) {
      const name = nameOf(message)
      try {
        resources.push(encodeResource(schema, message, name))
        this.#faults.clear(type, name)
      } catch (error) {
        if (!(error instanceof InvalidResource)) throw error
        this.#faults.add({ type, resource: name, objects: objects(), reason: error.message })
        const lastGood = this.#groups.resources(this.#building).get(name)
        if (lastGood) resources.push(lastGood)
      }
    }
    return resources
  }
}

const allUsable = (resources: readonly Resource[]): boolean => resources.every(isUsable)

const ruleId = (rule: MergedRule | undefined): string => (rule ? `${rule.namespace}/${rule.host}` : '')

/** Whether clusters of a service carry its endpoints, or names taken from them. */
function dependsOnEndpoints(state: ServiceState): boolean {
  return state.service.resolution === 'dns' || state.service.resolution === 'passthrough'
}

function objectsOf(state: ServiceState, rule: MergedRule | undefined): string[] {
  return [
    `${state.service.registry}/${state.service.namespace}/${state.service.name}`,
    ...(rule?.sources ?? []).map((source) => `DestinationRule/${source.namespace}/${source.name}`),
  ].sort(compare)
}

function instanceObjects(proxy: ProxyClass): string[] {
  return [...new Set(proxy.instances.map(({ service }) => `${service.registry}/${service.namespace}/${service.name}`))]
}
