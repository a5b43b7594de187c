/** The route configurations that the namespaces of one view share, kept as tables from one snapshot to the next. */
import { crc32 } from 'node:zlib'
import { clone, type MessageShape } from '@bufbuild/protobuf'
import { type VirtualHost, VirtualHostSchema } from '../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'
import type { View } from '../snapshot/view.ts'
import { addedVirtualHosts, type PatchContext, patchVirtualHosts, routeConfigurationExtra } from '../xds/patches/apply.ts'
import { InvalidResource } from '../xds/resource-check.ts'
import { buildTable, encodeHost, type HostPiece, hostlessRoute, hostResource, type RouteTable, routeResource } from '../xds/routes/route-table.ts'
import { type RoutedPort, type RoutePlan, routeContext, routePlans } from '../xds/routes/sidecar-routes.ts'
import { catchAllHost, serviceVirtualHost, virtualServiceHost } from '../xds/routes/virtual-hosts.ts'
import { isUsable, lost, type Resource } from '../xds/slab/resource.ts'
import type { Faults } from './faults.ts'
import type { Memo } from './memo.ts'
import type { ProxyClass } from './proxy-class.ts'

type Piece = HostPiece | undefined
type Groups = readonly { readonly namespace: string; readonly pieces: readonly HostPiece[] }[]

/** What is known of one route: its hosts as strangers see them, by namespace, and all in one table unless hosts are resources of their own. */
interface Route {
  readonly groups: Groups
  readonly table: RouteTable | undefined
}

/**
 * Virtual hosts that are resources of their own are shared in so many groups, by namespace: a proxy has all but one in common
 * with everybody, and that one in the form its own namespace sees.
 */
const bucketCount = 16
export const buckets: readonly number[] = Array.from({ length: bucketCount }, (_, bucket) => bucket)
export const bucketOf = (namespace: string): number => crc32(namespace) % bucketCount

/** Maker of route configurations for one view, one set of traits and one set of caller labels. */
export class SidecarRouteGroup {
  readonly #memo: Memo
  readonly #faults: Faults
  readonly #routes = new Map<string, Route>()
  #snapshot: MeshSnapshot | undefined
  #plans: readonly RoutePlan[] = []
  /** Last resource of each route and namespace, kept while neither its table nor its own hosts change. */
  readonly #resources = new Map<string, { table: RouteTable; own: readonly HostPiece[]; extra: Uint8Array; resource: Resource }>()

  constructor(memo: Memo, faults: Faults) {
    this.#memo = memo
    this.#faults = faults
  }

  /** The route configurations for a class. */
  resources(view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): Resource[] {
    this.#refresh(view, snapshot, proxy, patches)
    return this.#plans.map((plan) => this.#resource(plan, view, snapshot, proxy, patches))
  }

  /** The virtual hosts of a bucket as resources of their own; `own` as the namespace of the class sees them. */
  hosts(bucket: number, own: boolean, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): Resource[] {
    this.#refresh(view, snapshot, proxy, patches)
    return this.#plans.flatMap((plan) => {
      if (!plan.catchAll) return []
      const groups = (this.#routes.get(plan.name) as Route).groups.filter(({ namespace }) => bucketOf(namespace) === bucket)
      const pieces = groups.flatMap((group) =>
        own && group.namespace === proxy.namespace ? this.#ownPieces(plan, view, snapshot, proxy, patches) : group.pieces,
      )
      return pieces.map((piece) => hostResource(plan.name, piece))
    })
  }

  #refresh(view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): void {
    if (this.#snapshot === snapshot) return
    this.#snapshot = snapshot
    this.#plans = routePlans(view, snapshot, proxy.traits)
    for (const plan of this.#plans) this.#buildRoute(plan, view, snapshot, proxy, patches)
  }

  /** Makes virtual hosts ahead of need, as strangers see them. Yields the bytes of each. */
  *prepare(view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): Generator<number> {
    for (const plan of routePlans(view, snapshot, proxy.traits)) {
      for (const routed of plan.ports) yield this.#servicePiece(plan, routed, false, view, snapshot, proxy, patches)?.bytes.length ?? 0
    }
  }

  #buildRoute(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): void {
    const groups: { namespace: string; pieces: HostPiece[] }[] = []
    const taken = new Set<string>()
    const claim = (piece: Piece, again: (without: ReadonlySet<string>) => Piece): HostPiece | undefined => {
      const duplicates = piece?.domains.filter((domain) => taken.has(domain)) ?? []
      const kept = duplicates.length === 0 ? piece : again(new Set(duplicates))
      for (const domain of kept?.domains ?? []) taken.add(domain)
      return kept
    }
    for (const routed of plan.ports) {
      const { namespace } = routed.state.service
      const piece = claim(this.#servicePiece(plan, routed, false, view, snapshot, proxy, patches), (without) =>
        this.#servicePiece(plan, routed, false, view, snapshot, proxy, patches, without),
      )
      let group = groups[groups.length - 1]
      if (group?.namespace !== namespace) groups.push((group = { namespace, pieces: [] }))
      if (piece) group.pieces.push(piece)
    }
    const rest: HostPiece[] = []
    const context = routeContext(view, snapshot, plan.port, proxy.sourceLabels, proxy.namespace)
    for (const { host, virtualService } of plan.extraHosts) {
      const make = (without: ReadonlySet<string>) =>
        this.#encode(plan, () => withoutDomains(virtualServiceHost(host, virtualService, context), without), patches, [
          `VirtualService/${virtualService.namespace}/${virtualService.name}`,
        ])
      const piece = claim(make(new Set()), make)
      if (piece) rest.push(piece)
    }
    for (const host of addedVirtualHosts(plan.name, patches)) {
      const make = (without: ReadonlySet<string>) => this.#encode(plan, () => withoutDomains(host, without), patches, [])
      const piece = claim(make(new Set()), make)
      if (piece) rest.push(piece)
    }
    const any = plan.catchAll && !taken.has('*') ? this.#encode(plan, () => catchAllHost(view, context), patches, []) : undefined
    if (any) rest.push(any)
    groups.push({ namespace: '', pieces: rest })
    const before = this.#routes.get(plan.name)
    if (before && before.table?.block.slab !== lost && sameGroups(before.groups, groups)) return
    this.#routes.set(plan.name, { groups, table: plan.catchAll && proxy.traits.takesVirtualHosts ? undefined : buildTable(plan.name, groups) })
  }

  #resource(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): Resource {
    const { table } = this.#routes.get(plan.name) as Route
    const extra = routeConfigurationExtra(plan.name, patches)
    if (!table) return hostlessRoute(plan.name, extra)
    const own = this.#ownPieces(plan, view, snapshot, proxy, patches)
    const key = `${plan.name}|${proxy.namespace}`
    const before = this.#resources.get(key)
    const same = before && before.table === table && samePieces(before.own, own) && Buffer.compare(before.extra, extra) === 0
    if (same && isUsable(before.resource)) return before.resource
    const resource = routeResource(table, proxy.namespace, own, extra)
    this.#resources.set(key, { table, own, extra, resource })
    return resource
  }

  /** Hosts of the class's own namespace, short names included. */
  #ownPieces(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, patches: PatchContext): HostPiece[] {
    return plan.ports
      .filter((routed) => routed.state.service.namespace === proxy.namespace)
      .flatMap((routed) => this.#servicePiece(plan, routed, true, view, snapshot, proxy, patches) ?? [])
  }

  #servicePiece(
    plan: RoutePlan,
    routed: RoutedPort,
    own: boolean,
    view: View,
    snapshot: MeshSnapshot,
    proxy: ProxyClass,
    patches: PatchContext,
    without?: ReadonlySet<string>,
  ): Piece {
    const { state, port, virtualService } = routed
    const { traits } = proxy
    const inputs = virtualService ? destinationInputs(view, virtualService) : [view.ruleFor(state.service)]
    const source = virtualService ? JSON.stringify(proxy.sourceLabels) : ''
    const variant = `host|${plan.name}|${own}|${virtualService ? `${view.id}|${source}|${proxy.namespace}` : ''}|${traits.filterKey}|${without ? [...without].join() : ''}`
    return this.#memo.get(state.service, variant, [virtualService, snapshot.mesh, port, ...inputs, ...traits.filters], () => {
      const context = routeContext(view, snapshot, port.number, proxy.sourceLabels, proxy.namespace)
      const objects = [
        `${state.service.registry}/${state.service.namespace}/${state.service.name}`,
        ...(virtualService ? [`VirtualService/${virtualService.namespace}/${virtualService.name}`] : []),
      ]
      const make = () => withoutDomains(serviceVirtualHost(state, port, virtualService, own, context), without)
      return this.#encode(plan, plan.catchAll ? make : () => anyDomain(make()), patches, objects)
    })
  }

  /** Encodes a virtual host. One that Envoy would refuse is reported, and its last good form stays. */
  #encode(plan: RoutePlan, make: () => VirtualHost, patches: PatchContext, objects: readonly string[]): Piece {
    let name = plan.name
    try {
      const host = make()
      name = `${plan.name}/${host.name}`
      const [patched] = patchVirtualHosts([host], plan.name, patches)
      if (!patched || patched.domains.length === 0) return undefined
      const piece = encodeHost(patched)
      this.#faults.clear('rds', name)
      return piece
    } catch (error) {
      if (!(error instanceof InvalidResource)) throw error
      this.#faults.add({ type: 'rds', resource: name, objects, reason: error.message })
      const host = name.slice(plan.name.length + 1)
      return this.#routes
        .get(plan.name)
        ?.groups.flatMap(({ pieces }) => pieces)
        .find((piece) => piece.name === host)
    }
  }
}

function withoutDomains(host: MessageShape<typeof VirtualHostSchema>, without: ReadonlySet<string> | undefined): VirtualHost {
  if (!without || without.size === 0) return host
  const narrowed = clone(VirtualHostSchema, host)
  narrowed.domains = host.domains.filter((domain) => !without.has(domain))
  return narrowed
}

/** The only virtual host of a sniffed port answers to every name: the address has already decided. */
function anyDomain(host: VirtualHost): VirtualHost {
  host.domains = ['*']
  return host
}

/** All services that a VirtualService sends to and their rules: ports and hash policies come from them. */
function destinationInputs(view: View, virtualService: NonNullable<RoutedPort['virtualService']>): unknown[] {
  const hosts = new Set(virtualService.http.flatMap((route) => (route.route ?? []).map((entry) => entry.destination.host)))
  return [...hosts].flatMap((host) => {
    const state = view.byHost.get(host)
    return [state?.service, state && view.ruleFor(state.service)]
  })
}

function sameGroups(one: Groups, other: Groups): boolean {
  return (
    one.length === other.length &&
    one.every((group, index) => group.namespace === other[index]?.namespace && samePieces(group.pieces, other[index]?.pieces ?? []))
  )
}

function samePieces(one: readonly HostPiece[], other: readonly HostPiece[]): boolean {
  return one.length === other.length && one.every((piece, index) => piece === other[index])
}
