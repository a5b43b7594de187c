/** The route configurations that the namespaces of one view share, kept as tables from one snapshot to the next. */
import { crc32 } from 'node:zlib'
import { clone, type MessageShape } from '@bufbuild/protobuf'
import { type VirtualHost, VirtualHostSchema } from '../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { configKey } from '../config/kinds.ts'
import { consequences, contain } from '../model/faults.ts'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'
import type { View } from '../snapshot/view.ts'
import { serviceKey } from '../xds/clusters/outbound.ts'
import type { Outcome, Problem } from '../xds/draft.ts'
import { addedVirtualHosts, type PatchContext, patchVirtualHosts, routeConfigurationExtra } from '../xds/patches/apply.ts'
import { buildTable, encodeHost, type HostPiece, hostlessRoute, hostResource, type RouteTable, routeResource } from '../xds/routes/route-table.ts'
import { type RoutedPort, type RoutePlan, routeContext, routePlans } from '../xds/routes/sidecar-routes.ts'
import { catchAllHost, serviceVirtualHost, virtualServiceHost } from '../xds/routes/virtual-hosts.ts'
import { isUsable, lost, type Resource } from '../xds/slab/resource.ts'
import type { KeyedSums } from '../xds/slab/sums.ts'
import type { Memo } from './memo.ts'
import type { ProxyClass } from './proxy-class.ts'

type Groups = readonly { readonly namespace: string; readonly pieces: readonly HostPiece[] }[]

/** What came of making a virtual host; without a piece there is no such host, unless a problem says that it failed. */
interface Made {
  readonly name: string
  readonly piece: HostPiece | undefined
  /** Why it could not be made. */
  readonly failed: Pick<Problem, 'objects' | 'reason'> | undefined
  /** Patches that could not be applied. */
  readonly problems: readonly Problem[]
}

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

/** A route as one namespace has it. */
interface OwnRoute {
  /** The hosts of the namespace, in the form that it sees itself, as they were made last. */
  pieces: readonly HostPiece[]
  /** The last resource, kept while neither the table nor the own hosts change. */
  made: { readonly table: RouteTable; readonly own: readonly HostPiece[]; readonly extra: Uint8Array; readonly resource: Resource } | undefined
}

/** Maker of route configurations for one view, one set of traits and one set of caller labels. */
export class SidecarRouteGroup {
  readonly #memo: Memo
  readonly #sums: KeyedSums
  readonly #routes = new Map<string, Route>()
  #snapshot: MeshSnapshot | undefined
  #plans: readonly RoutePlan[] = []
  /** What went wrong with what all namespaces share, in the present snapshot. */
  #problems: Problem[] = []
  /** What each namespace was made last, by namespace and route. */
  readonly #namespaces = new Map<string, Map<string, OwnRoute>>()

  constructor(memo: Memo, sums: KeyedSums) {
    this.#memo = memo
    this.#sums = sums
  }

  /** The route configurations for a class. */
  resources(view: View, snapshot: MeshSnapshot, proxy: ProxyClass): Outcome[] {
    this.#refresh(view, snapshot, proxy)
    const problems: Problem[] = []
    const made = this.#plans.flatMap((plan) => this.#contained(plan, problems, () => [this.#resource(plan, view, snapshot, proxy, problems)]))
    return [...made, ...told([...this.#problems, ...problems])]
  }

  /** The virtual hosts of a bucket as resources of their own; `own` as the namespace of the class sees them. */
  hosts(bucket: number, own: boolean, view: View, snapshot: MeshSnapshot, proxy: ProxyClass): Outcome[] {
    this.#refresh(view, snapshot, proxy)
    const problems: Problem[] = []
    const made = this.#plans.flatMap((plan) => {
      const route = this.#routes.get(plan.name)
      if (!plan.catchAll || !route) return []
      const groups = route.groups.filter(({ namespace }) => bucketOf(namespace) === bucket)
      const pieces = groups.flatMap((group) =>
        own && group.namespace === proxy.namespace ? this.#ownPieces(plan, view, snapshot, proxy, problems) : group.pieces,
      )
      return pieces.map((piece) => hostResource(plan.name, piece))
    })
    return [...made, ...told([...this.#problems, ...problems])]
  }

  /** Namespaces that it keeps routes for. */
  get namespaceCount(): number {
    return this.#namespaces.size
  }

  /** A namespace has no proxies any more. */
  forget(namespace: string): void {
    this.#namespaces.delete(namespace)
  }

  #ownRoute(plan: RoutePlan, { namespace }: ProxyClass): OwnRoute {
    let routes = this.#namespaces.get(namespace)
    if (!routes) this.#namespaces.set(namespace, (routes = new Map()))
    let route = routes.get(plan.name)
    if (!route) routes.set(plan.name, (route = { pieces: [], made: undefined }))
    return route
  }

  #refresh(view: View, snapshot: MeshSnapshot, proxy: ProxyClass): void {
    if (this.#snapshot === snapshot) return
    this.#plans = routePlans(view, snapshot, proxy.traits)
    this.#problems = []
    const names = new Set(this.#plans.map(({ name }) => name))
    for (const routes of [this.#routes, ...this.#namespaces.values()]) for (const name of routes.keys()) if (!names.has(name)) routes.delete(name)
    for (const plan of this.#plans)
      this.#contained(plan, this.#problems, () => {
        this.#buildRoute(plan, view, snapshot, proxy)
        return []
      })
    this.#snapshot = snapshot
  }

  /** Makes virtual hosts ahead of need, as strangers see them. Yields the bytes of each. */
  *prepare(view: View, snapshot: MeshSnapshot, proxy: ProxyClass): Generator<number> {
    for (const plan of routePlans(view, snapshot, proxy.traits)) {
      for (const routed of plan.ports) yield this.#servicePiece(plan, routed, false, view, snapshot, proxy).piece?.bytes.length ?? 0
    }
  }

  /** A route that cannot be made costs that route only. */
  #contained<T>(plan: RoutePlan, problems: Problem[], make: () => T[]): T[] {
    return contain(make, (reason) => {
      problems.push({ type: 'rds', resource: plan.name, objects: [], reason })
      return []
    })
  }

  #buildRoute(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass): void {
    const { groups, problems } = this.#groupsOf(plan, view, snapshot, proxy)
    this.#problems.push(...problems)
    const before = this.#routes.get(plan.name)
    if (before && before.table?.block.slab !== lost && sameGroups(before.groups, groups)) return
    this.#routes.set(plan.name, {
      groups,
      table: plan.catchAll && proxy.traits.takesVirtualHosts ? undefined : buildTable(plan.name, groups, this.#sums),
    })
  }

  /** The virtual hosts of a route by namespace, no domain twice. */
  #groupsOf(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass): { groups: Groups; problems: readonly Problem[] } {
    const groups: { namespace: string; pieces: HostPiece[] }[] = []
    const problems: Problem[] = []
    const taken = new Set<string>()
    const before = this.#routes.get(plan.name)?.groups.flatMap(({ pieces }) => pieces)
    const settle = (made: Made) => settlePiece(plan, made, before, problems)
    const claim = (make: (without?: ReadonlySet<string>) => Made): HostPiece[] => {
      const piece = settle(make())
      const duplicates = piece?.domains.filter((domain) => taken.has(domain)) ?? []
      const kept = duplicates.length === 0 ? piece : settle(make(new Set(duplicates)))
      // A last good form that overlaps with what others have by now cannot stay.
      if (!kept || kept.domains.some((domain) => taken.has(domain))) return []
      for (const domain of kept.domains) taken.add(domain)
      return [kept]
    }
    for (const routed of plan.ports) {
      const { namespace } = routed.state.service
      let group = groups[groups.length - 1]
      if (group?.namespace !== namespace) groups.push((group = { namespace, pieces: [] }))
      group.pieces.push(...claim((without) => this.#servicePiece(plan, routed, false, view, snapshot, proxy, without)))
    }
    const rest: HostPiece[] = []
    const context = routeContext(view, snapshot, plan.port, proxy.sourceLabels, proxy.namespace)
    for (const { host, virtualService } of plan.extraHosts) {
      const objects = virtualService.sources.map(configKey)
      const make = () => virtualServiceHost(host, virtualService, context)
      rest.push(...claim((without) => encode(plan, `${host}:${plan.port}`, () => withoutDomains(make(), without), proxy, objects)))
    }
    for (const host of patched(proxy, problems, (patches) => addedVirtualHosts(plan.name, patches)))
      rest.push(...claim((without) => encode(plan, host.name, () => withoutDomains(host, without), proxy, proxy.traits.filters.map(configKey))))
    if (plan.catchAll && !taken.has('*')) rest.push(...claim(() => encode(plan, '*', () => catchAllHost(view, context), proxy, [])))
    groups.push({ namespace: '', pieces: rest })
    return { groups, problems }
  }

  #resource(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, problems: Problem[]): Resource {
    const route = this.#routes.get(plan.name)
    if (!route) throw new Error('its virtual hosts could not be made')
    const { table } = route
    const extra = patched(proxy, problems, (patches) => routeConfigurationExtra(plan.name, patches))
    if (!table) return hostlessRoute(plan.name, extra)
    const own = this.#ownPieces(plan, view, snapshot, proxy, problems)
    const mine = this.#ownRoute(plan, proxy)
    const before = mine.made
    const same = before && before.table === table && samePieces(before.own, own) && Buffer.compare(before.extra, extra) === 0
    if (same && isUsable(before.resource)) return before.resource
    const resource = routeResource(table, proxy.namespace, own, extra, this.#sums)
    mine.made = { table, own, extra, resource }
    return resource
  }

  /** Hosts of the class's own namespace, short names included. */
  #ownPieces(plan: RoutePlan, view: View, snapshot: MeshSnapshot, proxy: ProxyClass, problems: Problem[]): HostPiece[] {
    const mine = this.#ownRoute(plan, proxy)
    const before = mine.pieces
    const own = plan.ports
      .filter((routed) => routed.state.service.namespace === proxy.namespace)
      .flatMap((routed) => settlePiece(plan, this.#servicePiece(plan, routed, true, view, snapshot, proxy), before, problems) ?? [])
    mine.pieces = own
    return own
  }

  #servicePiece(
    plan: RoutePlan,
    routed: RoutedPort,
    own: boolean,
    view: View,
    snapshot: MeshSnapshot,
    proxy: ProxyClass,
    without?: ReadonlySet<string>,
  ): Made {
    const { state, port, virtualService } = routed
    const { traits } = proxy
    const inputs = virtualService ? destinationInputs(view, virtualService) : [view.ruleFor(state.service)]
    const source = virtualService ? JSON.stringify(proxy.sourceLabels) : ''
    const space = `host|${virtualService ? `${view.id}|${source}|${proxy.namespace}` : ''}|${traits.filterKey}`
    const variant = `${plan.name}|${own}|${without ? [...without].join() : ''}`
    return this.#memo.get(
      space,
      [state.service, virtualService],
      variant,
      [virtualService, snapshot.mesh, port, ...inputs, ...traits.filters],
      () => {
        const context = routeContext(view, snapshot, port.number, proxy.sourceLabels, proxy.namespace)
        const objects = [serviceKey(state.service), ...(virtualService?.sources.map(configKey) ?? [])]
        const make = () => withoutDomains(serviceVirtualHost(state, port, virtualService, own, context), without)
        return encode(plan, `${state.service.hostname}:${port.number}`, plan.catchAll ? make : () => anyDomain(make()), proxy, objects)
      },
    )
  }
}

/** Encodes a virtual host, patched. One that Envoy would refuse only as patched is made as it was. */
function encode(plan: RoutePlan, name: string, make: () => VirtualHost, proxy: ProxyClass, objects: readonly string[]): Made {
  const problems: Problem[] = []
  const failed = (reason: string): Made => ({ name, piece: undefined, failed: { objects, reason }, problems })
  return contain(() => {
    const host = make()
    const pieceOf = (of: VirtualHost | undefined) => (of && of.domains.length > 0 ? encodeHost(of) : undefined)
    const piece = patched(proxy, problems, (patches) =>
      contain(
        () => pieceOf(patchVirtualHosts([host], plan.name, patches)[0]),
        (reason) => {
          if (proxy.traits.filters.length === 0) throw new Error(reason)
          const filters = proxy.traits.filters.map(configKey)
          problems.push({ type: 'rds', resource: `${plan.name}/${name}`, objects: filters, reason, consequence: consequences.without })
          return pieceOf(host)
        },
      ),
    )
    return { name: host.name, piece, failed: undefined, problems }
  }, failed)
}

/** Applies patches; those that cannot be applied are problems. */
function patched<T>({ traits }: ProxyClass, problems: Problem[], apply: (patches: PatchContext) => T): T {
  return apply({
    context: 'SIDECAR_OUTBOUND',
    traits,
    report: (object, reason) => problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence: 'the patch is left out' }),
  })
}

/** The host that was made, or where that failed its last good form. */
function settlePiece(plan: RoutePlan, made: Made, before: readonly HostPiece[] | undefined, problems: Problem[]): HostPiece | undefined {
  problems.push(...made.problems)
  if (!made.failed) return made.piece
  const kept = before?.find(({ name }) => name === made.name)
  const consequence = kept ? consequences.kept : consequences.leftOut
  problems.push({ type: 'rds', resource: `${plan.name}/${made.name}`, ...made.failed, consequence })
  return kept
}

/** Problems as outcomes, each once. */
function told(problems: readonly Problem[]): Outcome[] {
  const unique = new Map(problems.map((problem) => [`${problem.type}|${problem.resource}|${problem.reason}`, problem]))
  return [...unique.values()].map((problem) => ({ problem }))
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
