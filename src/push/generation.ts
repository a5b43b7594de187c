/**
 * Makes the groups of resources that classes need, for one snapshot after another. Each group knows which kinds of objects
 * it cannot depend on; everything else makes it look again at its inputs, and what was made from the same inputs is kept.
 */
import { fromBinary } from '@bufbuild/protobuf'
import type { Endpoint } from '../../protocols/data.ts'
import { type Cluster, ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { TypedExtensionConfigSchema } from '../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { type Listener, ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { isIp } from '../config/addresses.ts'
import { configKey } from '../config/kinds.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import { jwtRules, keySource } from '../security/authentication/jwt-filter.ts'
import { authorizerFacts, filtersOf, type PolicyFilters } from '../security/authorization/filters.ts'
import { policiesFor, type WorkloadPolicies } from '../snapshot/policies.ts'
import type { Changes, MeshSnapshot, ServiceState } from '../snapshot/snapshot.ts'
import { buildView, type View, type ViewKey } from '../snapshot/view.ts'
import { accountsOf, commonClusters, objectsOf, outboundClusters, serviceKey, sniDnatClusters } from '../xds/clusters/outbound.ts'
import { policyFor } from '../xds/clusters/traffic-policy.ts'
import { type Draft, type ListenerConflict, makeAll, type Outcome, type Problem, settle } from '../xds/draft.ts'
import { loadAssignment } from '../xds/endpoints/load-assignment.ts'
import { dependsOnLocality } from '../xds/endpoints/locality.ts'
import { gatewayListeners, gatewayRoutes } from '../xds/listeners/gateway.ts'
import { inboundClusters, inboundListeners, inboundPorts } from '../xds/listeners/inbound.ts'
import { outboundListeners } from '../xds/listeners/outbound.ts'
import { outboundCluster, sniCluster } from '../xds/names.ts'
import {
  addedClusters,
  addedListeners,
  clusterPatcher,
  extensionConfigs,
  listenerPatcher,
  type PatchContext,
  routePatcher,
} from '../xds/patches/apply.ts'
import type { GroupStore } from '../xds/slab/group-store.ts'
import { isUsable, type Resource } from '../xds/slab/resource.ts'
import type { KeyedSums } from '../xds/slab/sums.ts'
import type { Traits } from '../xds/traits.ts'
import { clusterType, endpointType, extensionConfigType, listenerType, routeType, virtualHostType } from '../xds/type-urls.ts'
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
/** How long they do, in milliseconds. */
const lingerMs = 2000

/** Kinds that views are made from. */
const viewKinds = ['Service', 'VirtualService', 'DestinationRule', 'Sidecar', 'Mesh']

interface GroupSpec {
  /** The services in it follow a Sidecar, whose scope takes in what visible VirtualServices send to. */
  readonly scoped?: boolean
  readonly kind: keyof typeof untouchedBy
  readonly typeUrl: string
  readonly build: () => Iterable<Outcome>
}

/** Owner, in the memory, of what is made before any proxy wants it. */
const ahead = 'ahead of need'

/** Maker and owner of the groups. */
export class Generation {
  readonly #groups: GroupStore
  readonly #faults: Faults
  readonly #sums: KeyedSums
  readonly #memo = new Memo()
  readonly #views = new Map<string, View>()
  readonly #specs = new Map<string, GroupSpec>()
  readonly #endpointGroups = new Map<string, { viewKey: ViewKey; traits: Traits }>()
  /** Tables of routes, and the groups that are made from them. */
  readonly #routeGroups = new Map<string, { readonly group: SidecarRouteGroup; readonly users: Map<string, string | undefined> }>()
  #built = new Set<string>()
  /** The group that is being built. */
  #building = ''
  #snapshot: MeshSnapshot
  #now = 0
  /** Conflicts between listeners by group. */
  readonly #conflicts = new Map<string, readonly ListenerConflict[]>()

  constructor(snapshot: MeshSnapshot, groups: GroupStore, faults: Faults, sums: KeyedSums) {
    this.#sums = sums
    this.#snapshot = snapshot
    this.#groups = groups
    this.#faults = faults
  }

  /** Things made and found in memory since the start. */
  get memo(): { made: number; found: number; spaces: number } {
    return this.#memo
  }

  /** Namespaces that routes are kept for, over all sets of routes. */
  get routeNamespaces(): number {
    return [...this.#routeGroups.values()].reduce((sum, { group }) => sum + group.namespaceCount, 0)
  }

  /** Conflicts between listeners in all views and classes that are in use, each once. */
  get conflicts(): readonly ListenerConflict[] {
    const found = new Map<string, ListenerConflict>()
    for (const conflicts of this.#conflicts.values())
      for (const conflict of conflicts) found.set(`${conflict.kind}|${conflict.view}|${conflict.key}`, conflict)
    return [...found.values()]
  }

  /** Turns to a new snapshot at a time (monotonic milliseconds). Groups that the changes may touch are built again when a class asks for them. */
  advance(snapshot: MeshSnapshot, changes: Changes, now: number): void {
    this.#snapshot = snapshot
    this.#now = now
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
      this.#memo.owner = id
      this.#rebuild(id, spec, proxy)
    }
    return groups
  }

  /**
   * Makes a group anew. This is the one place where errors end: a resource that fails stays at its last good state, or is left out,
   * and so does the group if it fails as a whole. Its faults are those of this making.
   */
  #rebuild(id: string, spec: GroupSpec, proxy: ProxyClass): void {
    const faults: ResourceFault[] = []
    contain(
      () => {
        const settled = settle(spec.build(), (name) => this.#groups.resources(id).get(name))
        this.#groups.replace(id, settled.resources, lingers.has(spec.typeUrl) ? this.#now + lingerMs : undefined)
        this.#conflicts.set(id, settled.conflicts)
        faults.push(...settled.faults)
      },
      (reason) => {
        const kept = this.#groups.has(id)
        if (!kept) this.#groups.replace(id, [])
        const { sidecar } = proxy.viewKey
        const objects = [...(sidecar ? [configKey(sidecar)] : []), ...proxy.gateways.map((name) => `Gateway/${name}`)]
        faults.push({ type: 'group', resource: id, objects, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      },
    )
    this.#faults.replace(id, faults)
  }

  /** Forgets groups that no class uses. */
  retain(used: ReadonlySet<string>): void {
    for (const id of [...this.#groups.ids()]) {
      if (used.has(id)) continue
      this.#groups.retire(id)
      this.#specs.delete(id)
      this.#endpointGroups.delete(id)
      this.#built.delete(id)
      this.#conflicts.delete(id)
      this.#faults.clear(id)
      this.#memo.release(id)
    }
    for (const [tables, { group, users }] of this.#routeGroups) {
      const gone = [...users].filter(([id]) => !used.has(id))
      for (const [id] of gone) users.delete(id)
      const namespaces = new Set(users.values())
      for (const [, namespace] of gone) if (namespace !== undefined && !namespaces.has(namespace)) group.forget(namespace)
      if (users.size === 0) this.#routeGroups.delete(tables)
    }
    const views = new Set([...this.#endpointGroups.values()].map(({ viewKey }) => viewKey.id))
    for (const id of this.#views.keys()) if (!views.has(id)) this.#views.delete(id)
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
        {
          kind: 'extensions',
          typeUrl: extensionConfigType,
          build: () => this.#patched(proxy.traits, 'extensions', (context) => makeAll(TypedExtensionConfigSchema, 'ecds', extensionConfigs(context))),
        },
      ],
    ]
  }

  /**
   * Makes, ahead of need, what a sidecar's services turn into; its first group then finds most of it in memory. Yields the
   * bytes made for each service, so that the caller can stop and go on between services.
   */
  *prepare(proxy: ProxyClass): Generator<number> {
    const view = this.view(proxy.viewKey)
    const bytes = (outcomes: readonly Outcome[]) =>
      outcomes.reduce((sum, made) => ('slices' in made ? made.slices.reduce((part, { length }) => part + length, sum) : sum), 0)
    for (const state of view.services) {
      this.#memo.owner = ahead
      yield bytes(this.#serviceClusters(state, view, proxy.traits, 'clusters', outboundClusters)) +
        bytes(this.#serviceEndpoints(state, view, proxy.traits))
    }
    for (const made of new SidecarRouteGroup(this.#memo, this.#sums).prepare(view, this.#snapshot, proxy)) {
      yield made
      this.#memo.owner = ahead
    }
  }

  #serviceClusters(state: ServiceState, view: View, traits: Traits, variant: string, make: typeof outboundClusters): readonly Outcome[] {
    const snapshot = this.#snapshot
    const rule = view.ruleFor(state.service)
    return this.#memo.get(
      `${variant}|${traits.clusterKey}|${state.service.resolution === 'dns' ? traits.placeKey : ''}`,
      [dependsOnEndpoints(state) ? state : state.service, rule],
      '',
      [
        rule,
        accountsOf(state, snapshot).join(),
        snapshot.mesh,
        snapshot.networks,
        snapshot.networkGateways,
        snapshot.policies.peers,
        ...traits.filters,
      ],
      () => this.#patched(traits, contextOf(traits), (context) => makeClusters(make(state, rule, snapshot, traits), context)),
      allUsable,
    )
  }

  #outboundClusters(proxy: ProxyClass): Outcome[] {
    const { traits } = proxy
    const view = this.view(proxy.viewKey)
    const made = this.#ofEach(view.services, 'cds', (state) => this.#serviceClusters(state, view, traits, 'clusters', outboundClusters))
    if (traits.sniDnat)
      made.push(...this.#ofEach(view.services, 'cds', (state) => this.#serviceClusters(state, view, traits, 'sni-clusters', sniDnatClusters)))
    return [
      ...made,
      ...this.#patched(traits, contextOf(traits), (context) => makeClusters(commonClusters(this.#snapshot, traits), context, addedClusters(context))),
    ]
  }

  /** What is made of each service. One that fails as a whole, before there are drafts, keeps what the group has of it. */
  #ofEach(services: readonly ServiceState[], type: string, make: (state: ServiceState) => readonly Outcome[]): Outcome[] {
    const there = this.#groups.resources(this.#building)
    return services.flatMap((state) =>
      contain(
        () => [...make(state)],
        (reason) => {
          const { hostname } = state.service
          const kept = [...there.values()].filter(({ name }) => name.endsWith(`|${hostname}`) || name.endsWith(`_.${hostname}`))
          const consequence = kept.length > 0 ? consequences.kept : consequences.leftOut
          return [...kept, { problem: { type, resource: hostname, objects: [serviceKey(state.service)], reason, consequence } }]
        },
      ),
    )
  }

  #endpoints(proxy: ProxyClass): Outcome[] {
    const view = this.view(proxy.viewKey)
    return this.#ofEach(view.services, 'eds', (state) => this.#serviceEndpoints(state, view, proxy.traits))
  }

  #serviceEndpoints(state: ServiceState, view: View, traits: Traits): readonly Outcome[] {
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
      `endpoints|${place}`,
      [state, rule],
      '',
      [rule, snapshot.mesh, snapshot.networks, snapshot.networkGateways, snapshot.policies.peers],
      () => {
        const names = traits.sniDnat ? [outboundCluster, sniCluster] : [outboundCluster]
        const { addressed, problems } = withAddresses(state)
        const drafts = service.ports
          .filter((port) => port.protocol !== 'udp')
          .flatMap((port) =>
            subsets.flatMap((subset) => names.map((nameOf) => ({ port, subset, name: nameOf(port.number, subset?.name ?? '', service.hostname) }))),
          )
          .map(({ port, subset, name }) => ({
            name,
            objects: () => objectsOf(state, rule),
            make: () => loadAssignment(name, addressed, port, subset, policyFor(rule, subset, port.number), snapshot, traits),
          }))
        return [...makeAll(ClusterLoadAssignmentSchema, 'eds', drafts), ...problems]
      },
      allUsable,
    )
  }

  /** The short way of an endpoint change: only the load assignments of these hosts, in every group that has them and is not built anew. */
  #refreshEndpoints(hosts: ReadonlySet<string>): void {
    for (const [id, { viewKey, traits }] of this.#endpointGroups) {
      if (!this.#built.has(id)) continue
      for (const host of hosts) {
        const remade = new Set<string>([host])
        const faults: ResourceFault[] = []
        contain(
          () => {
            this.#memo.owner = id
            const view = this.view(viewKey)
            const state = view.byHost.get(host)
            const settled = settle(state ? this.#serviceEndpoints(state, view, traits) : [], (name) => this.#groups.resources(id).get(name))
            this.#groups.update(id, settled.resources)
            for (const { name } of settled.resources) remade.add(name)
            faults.push(...settled.faults)
          },
          (reason) => faults.push({ type: 'eds', resource: host, objects: [], reason, consequence: consequences.kept }),
        )
        for (const { resource } of faults) remade.add(resource)
        this.#faults.amend(id, remade, faults)
      }
    }
  }

  #inboundClusters(proxy: ProxyClass): Outcome[] {
    return this.#inbound('clusters-in', proxy, [], (view) =>
      this.#patched(proxy.traits, 'SIDECAR_INBOUND', (context) => {
        const { ports } = inboundPorts(view, proxy.instances, proxy.traits, proxy.address)
        return makeClusters(inboundClusters(ports, view, this.#snapshot, proxy.traits), context, addedClusters(context))
      }),
    )
  }

  /**
   * What a workload has of its own depends on its own services, the rules for them and its Sidecar, and on what else is `used`;
   * the class is another object when the services are.
   */
  #inbound(variant: string, proxy: ProxyClass, used: readonly unknown[], make: (view: View) => readonly Outcome[]): Outcome[] {
    const view = this.view(proxy.viewKey)
    const rules = proxy.instances.map(({ service }) => view.ruleFor(service))
    const inputs = [this.#snapshot.mesh, view.sidecar, ...rules, ...proxy.traits.filters, ...used]
    return [...this.#memo.get('inbound', [proxy], variant, inputs, () => make(view), allUsable)]
  }

  #policies(proxy: ProxyClass): WorkloadPolicies {
    return policiesFor(this.#snapshot.policies, this.#snapshot.mesh.rootNamespace, proxy)
  }

  /** What enforces policies; what cannot be expressed is a problem of the policies it came from. */
  #policyFilters(policies: WorkloadPolicies): { filters: PolicyFilters; problems: Outcome[] } {
    const objects = [...policies.requests, ...policies.authorization].map(configKey)
    const reasons = new Set<string>()
    const filters = filtersOf(policies, this.#snapshot, (found) => reasons.add(found))
    const problem = (reason: string): Outcome => ({
      problem: { type: 'policy', resource: objects.join(), objects, reason, consequence: 'the workloads that they select let nothing through' },
    })
    return { filters, problems: [...reasons].map(problem) }
  }

  #keySets({ requests }: WorkloadPolicies): unknown[] {
    return jwtRules(requests).map((rule) => this.#snapshot.keySets.get(keySource(rule) ?? ''))
  }

  #inboundListeners(proxy: ProxyClass): Outcome[] {
    const policies = this.#policies(proxy)
    const used = [...Object.values(policies).flat(), ...this.#keySets(policies), authorizerFacts(policies, this.#snapshot)]
    return this.#inbound('listeners-in', proxy, used, (view) =>
      this.#patched(proxy.traits, 'SIDECAR_INBOUND', (context) => {
        const { ports, conflicts } = inboundPorts(view, proxy.instances, proxy.traits, proxy.address)
        const { filters, problems } = this.#policyFilters(policies)
        const drafts = inboundListeners(ports, policies, filters, view, this.#snapshot, proxy.traits)
        const told = conflicts.map((key): Outcome => ({ conflict: { kind: 'inbound', view: proxy.id, key } }))
        return [...makeListeners(drafts, context), ...problems, ...told]
      }),
    )
  }

  #outboundListeners(proxy: ProxyClass): Outcome[] {
    const { traits, sourceLabels, namespace } = proxy
    return this.#patched(traits, 'SIDECAR_OUTBOUND', (context) => {
      const inputs = { view: this.view(proxy.viewKey), snapshot: this.#snapshot, traits, sourceLabels, namespace }
      const { listeners, conflicts, problems } = outboundListeners(inputs)
      return [
        ...makeListeners(listeners, context),
        ...conflicts.map((conflict): Outcome => ({ conflict })),
        ...problems.map((problem): Outcome => ({ problem })),
      ]
    })
  }

  /** Virtual hosts as resources of their own: those of strangers in groups that all namespaces share, the own ones in a group of the namespace. */
  #virtualHostGroups(proxy: ProxyClass, tables: string): [string, GroupSpec][] {
    const home = bucketOf(proxy.namespace)
    return buckets.map((bucket) => {
      const own = bucket === home
      const build = () => {
        return this.#routeGroup(tables, own ? proxy.namespace : undefined).hosts(bucket, own, this.view(proxy.viewKey), this.#snapshot, proxy)
      }
      return [`vhosts|${tables}|${own ? `of ${proxy.namespace}` : bucket}`, { kind: 'routes-outbound', typeUrl: virtualHostType, build }]
    })
  }

  #sidecarRoutes(proxy: ProxyClass, id: string): Outcome[] {
    return this.#routeGroup(id, proxy.namespace).resources(this.view(proxy.viewKey), this.#snapshot, proxy)
  }

  /** The routes of a set of tables, for the group that is being built; `namespace` if it has them as that namespace sees them. */
  #routeGroup(id: string, namespace: string | undefined): SidecarRouteGroup {
    let tables = this.#routeGroups.get(id)
    if (!tables) this.#routeGroups.set(id, (tables = { group: new SidecarRouteGroup(this.#memo, this.#sums), users: new Map() }))
    tables.users.set(this.#building, namespace)
    return tables.group
  }

  #gatewayListeners(proxy: ProxyClass): Outcome[] {
    return this.#patched(proxy.traits, 'GATEWAY', (context) => {
      const { filters, problems } = this.#policyFilters(this.#policies(proxy))
      const { listeners, rejected } = gatewayListeners(proxy, this.view(proxy.viewKey), filters, this.#snapshot)
      const refused = rejected.map(({ gateway, reason }): Outcome => {
        return { problem: { type: 'gateway', resource: gateway, objects: [`Gateway/${gateway}`], reason, consequence: 'the server is left out' } }
      })
      return [...makeListeners(listeners, context), ...problems, ...refused]
    })
  }

  #gatewayRoutes(proxy: ProxyClass): Outcome[] {
    const lastGood = this.#groups.resources(this.#building)
    return this.#patched(proxy.traits, 'GATEWAY', (context) => {
      const problems: Outcome[] = []
      const drafts = gatewayRoutes(proxy, this.view(proxy.viewKey), this.#snapshot, ({ route, host, objects, reason }) => {
        const before = lastGood.get(route)
        const kept = before && this.#decodeRoute(before).virtualHosts.find(({ name }) => name === host)
        const consequence = kept ? consequences.kept : consequences.leftOut
        problems.push({ problem: { type: 'rds', resource: `${route}/${host}`, objects, reason, consequence } })
        return kept
      })
      return [...makeAll(RouteConfigurationSchema, 'rds', drafts, routePatcher(context)), ...problems]
    })
  }

  #decodeRoute(resource: Resource): RouteConfiguration {
    return fromBinary(RouteConfigurationSchema, this.#groups.valueOf(resource))
  }

  /** Makes something to which patches are applied; patches that could not be are problems beside what was made. */
  #patched(traits: Traits, context: PatchContext['context'], make: (context: PatchContext) => readonly Outcome[]): Outcome[] {
    const problems: Problem[] = []
    const made = make({
      context,
      traits,
      report(object, reason) {
        if (problems.some((problem) => problem.resource === object && problem.reason === reason)) return
        problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence: 'the patch is left out' })
      },
    })
    return [...made, ...problems.map((problem): Outcome => ({ problem }))]
  }

  /** Namespace of the caller where some match looks at it, else nothing: then all namespaces can share. */
  #namespaceIfMatched(proxy: ProxyClass): string {
    return this.#snapshot.virtualServices.matchesCallers ? proxy.namespace : ''
  }
}

/** A service with those of its endpoints that EDS can tell of: Envoy refuses an assignment with a host name in it. The others are told. */
function withAddresses(state: ServiceState): { addressed: ServiceState; problems: Outcome[] } {
  const usable = ({ address }: Endpoint) => isIp(address) || address.startsWith('unix://')
  const odd = state.endpoints.filter((endpoint) => !usable(endpoint))
  if (odd.length === 0) return { addressed: state, problems: [] }
  const { service } = state
  const problems = odd.map(({ address, namespace, workload }): Outcome => {
    const objects = [...(workload === '' ? [] : [configKey({ kind: 'WorkloadEntry', namespace, name: workload })]), serviceKey(service)]
    const reason = `endpoint ${address} is not an IP address`
    return { problem: { type: 'eds', resource: service.hostname, objects, reason, consequence: consequences.leftOut } }
  })
  return { addressed: { service, endpoints: state.endpoints.filter(usable) }, problems }
}

const contextOf = (traits: Traits) => (traits.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND')

/** Clusters, merged and removed as patches say; then those that patches add. */
function makeClusters(drafts: readonly Draft<Cluster>[], context: PatchContext, added: readonly Draft<Cluster>[] = []): Outcome[] {
  return [...makeAll(ClusterSchema, 'cds', drafts, clusterPatcher(context)), ...makeAll(ClusterSchema, 'cds', added)]
}

/** Listeners, changed as patches say; then those that patches add, changed by what is said of filters. */
function makeListeners(drafts: readonly Draft<Listener>[], context: PatchContext): Outcome[] {
  return [
    ...makeAll(ListenerSchema, 'lds', drafts, listenerPatcher(context)),
    ...makeAll(ListenerSchema, 'lds', addedListeners(context), listenerPatcher(context, false)),
  ]
}

/** Whether the bytes of all that was made are still there. */
const allUsable = (outcomes: readonly Outcome[]): boolean =>
  outcomes.every((made) => {
    if ('slices' in made) return isUsable(made)
    return !('problem' in made) || !made.problem.instead || isUsable(made.problem.instead)
  })

/** Whether clusters of a service carry its endpoints, or names taken from them. */
function dependsOnEndpoints(state: ServiceState): boolean {
  return state.service.resolution === 'dns' || state.service.resolution === 'passthrough'
}
