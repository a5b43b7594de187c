/**
 * The routes of a namespace: the shared routes, except for hosts that differ. These are the namespace's own hosts, which it may call by
 * short names, and hosts in which its view differs. Because a domain has one owner in a route, all hosts that claim a domain together with
 * one of these differ too.
 */

import { contain } from '../../model/faults.ts'
import { append, sameItems } from '../../model/lists.ts'
import type { Problem } from '../../xds/draft.ts'
import { routeConfigurationExtra } from '../../xds/envoy-filter/routes.ts'
import { hostOf } from '../../xds/names.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import { buildTable, type HostPiece, hostlessRoute, hostResource, type RouteTable, routeResource } from '../../xds/routes/route-table.ts'
import { isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import { virtualHostType } from '../../xds/type-urls.ts'
import { domainOf, everyRoute, hostsOf, placesOf, servicesOf, wholeRoute } from './claims.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { claimDomains, inOrder } from './route-hosts.ts'
import type { SharedRoute, SharedRoutes } from './shared-routes.ts'

/** A route as a namespace sees it. */
interface OwnRoute {
  readonly route: RouteName
  /** Whether the shared routes contain the route. */
  readonly isShared: boolean
  /** Hosts of the shared route that are hidden. */
  readonly hiddenHosts: readonly string[]
  /** The namespace's own virtual hosts in the route. */
  readonly pieces: readonly HostPiece[]
  /** Whether the route exists: it has a virtual host of a service left, or needs none. */
  readonly exists: boolean
  /** Whether the route is equal to the shared one. */
  readonly isAsShared: boolean
  /** Fields that EnvoyFilters add, for a route that is not shared. */
  readonly extra: Uint8Array
}

/** A namespace's own resources of a type, and the shared ones that are hidden from it. */
export interface Overlay {
  readonly resources: readonly Resource[]
  /** Names of routes, or hosts, whose shared resources are hidden; sorted. */
  readonly hide: readonly string[]
}

/** The routes of one namespace in one view. */
export class OwnRoutes {
  readonly #shared: SharedRoutes
  readonly #sums: KeyedSums
  #routes: readonly OwnRoute[] = []
  #problems: readonly Problem[] = []
  /** Digests of the domains that its hosts claim, both in its own form and in the shared form, and of the routes ({@link domainOf}). */
  #domains = new Int32Array()
  #claimRevision: object = {}
  /** The state of the claim log up to which changes were checked. */
  #at = -1
  /** The last resources, reused while their parts are the same. */
  readonly #resources = new Map<
    string,
    { readonly own: OwnRoute; readonly table: RouteTable; readonly extra: Uint8Array; readonly resource: Resource }
  >()

  constructor(shared: SharedRoutes, sums: KeyedSums) {
    this.#shared = shared
    this.#sums = sums
  }

  /** Names of the routes in which the namespace has hosts of its own or hides shared ones. */
  get names(): readonly string[] {
    return this.#routes.map(({ route }) => route.name)
  }

  /** Returns a new object whenever a change of the claims in the shared routes may change these routes. */
  claimRevision(): object {
    const { claimLog } = this.#shared
    if (claimLog.concerns(this.#domains, this.#at)) this.#claimRevision = {}
    this.#at = claimLog.at
    return this.#claimRevision
  }

  /** Whether some hosts are equal to the shared ones. They have to be compared again when the shared form changes. */
  get hasRoutesAsShared(): boolean {
    return this.#routes.some(({ isAsShared, hiddenHosts }) => isAsShared && hiddenHosts.length > 0)
  }

  /** Problems of the last refresh. */
  get problems(): readonly Problem[] {
    return this.#problems
  }

  /** Updates the routes to the maker's view. `hosts` are those that may differ from the shared routes. */
  refresh(maker: HostMaker, hosts: Iterable<string>): void {
    const shared = this.#shared
    const problems: Problem[] = []
    const before = new Map(this.#routes.map((own) => [own.route.name, own]))
    const differing = new Differing(shared, maker, hosts, problems)
    this.#domains = Int32Array.from(differing.domains)
    const names = new Set([...differing.candidates.keys(), ...[...differing.hosts].flatMap((host) => shared.routesOf(host))])
    this.#routes = [...names].sort().flatMap((name) =>
      contain<readonly OwnRoute[]>(
        () => [this.#ownRoute(name, differing, maker, before.get(name), problems)],
        (reason) => {
          problems.push({ type: 'rds', resource: name, objects: [], reason })
          const kept = before.get(name)
          return kept ? [kept] : []
        },
      ),
    )
    this.#problems = problems
    for (const name of this.#resources.keys()) if (!names.has(name)) this.#resources.delete(name)
  }

  #ownRoute(name: string, differing: Differing, maker: HostMaker, before: OwnRoute | undefined, problems: Problem[]): OwnRoute {
    const shared = this.#shared.routes.get(name)
    const own = differing.candidates.get(name) ?? []
    const route = shared?.route ?? (own[0] as Candidate).route
    const hiddenHosts = shared ? [...differing.hosts].filter((host) => shared.claims.places.has(host)).sort() : []
    const hiddenPieces = hiddenHosts.flatMap((host) => (shared?.claims.places.get(host) ?? []).flatMap((place) => shared?.hosts[place]?.piece ?? []))
    const exists = differing.exists(name)
    const candidates = shared ? own : [...own, ...maker.ofRoute(route)]
    const lastGood = (host: string) => before?.pieces.find((piece) => piece.name === host) ?? hiddenPieces.find((piece) => piece.name === host)
    const routeHosts = claimDomains(route, exists ? [...candidates].sort(inOrder) : [], lastGood)
    problems.push(...routeHosts.problems)
    const pieces = routeHosts.hosts.flatMap(({ piece }) => piece ?? [])
    const isAsShared =
      exists &&
      shared !== undefined &&
      hiddenPieces.length === pieces.length &&
      hiddenPieces.every((piece) => pieces.some(({ version }) => version === piece.version))
    const extra = shared ? new Uint8Array() : maker.patched(problems, (patches) => routeConfigurationExtra(route.name, patches))
    return { route, isShared: shared !== undefined, hiddenHosts, pieces, exists, isAsShared, extra }
  }

  /** Route configurations. Those whose virtual hosts are resources of their own contain no hosts. */
  configurations(takesVirtualHosts: boolean): Overlay {
    const hostless = ({ route }: OwnRoute) => takesVirtualHosts && route.catchAll
    const touched = this.#routes.filter((own) => !own.isAsShared && (!hostless(own) || !own.isShared || !own.exists))
    return {
      resources: touched.flatMap((own) =>
        own.exists ? [hostless(own) ? hostlessRoute(own.route.name, this.#extraOf(own)) : this.#resource(own)] : [],
      ),
      hide: touched.flatMap(({ isShared, route }) => (isShared ? [route.name] : [])).sort(),
    }
  }

  /** Virtual hosts as resources of their own. A host is hidden from all routes or from none. */
  hosts(): Overlay {
    const routes = this.#routes.filter(({ route }) => route.catchAll)
    if (routes.every(({ isAsShared }) => isAsShared)) return { resources: [], hide: [] }
    const hidden = routes.flatMap(({ hiddenHosts, route }) =>
      this.#hiddenPieces(route.name, hiddenHosts).map(({ name }) => hostOf(virtualHostType, `${route.name}/${name}`)),
    )
    return {
      resources: routes.flatMap(({ route, pieces }) => pieces.map((piece) => hostResource(route.name, piece))),
      hide: [...new Set(hidden)].sort(),
    }
  }

  #hiddenPieces(route: string, hosts: readonly string[]): HostPiece[] {
    const shared = this.#shared.routes.get(route)
    return hosts.flatMap((host) => (shared?.claims.places.get(host) ?? []).flatMap((place) => shared?.hosts[place]?.piece ?? []))
  }

  #extraOf({ route, extra }: OwnRoute): Uint8Array {
    return this.#shared.routes.get(route.name)?.extra ?? extra
  }

  #resource(own: OwnRoute): Resource {
    const { route, hiddenHosts, pieces } = own
    const extra = this.#extraOf(own)
    const known = this.#resources.get(route.name)
    const table =
      this.#shared.tableOf(route.name) ?? (known && known.table.pieces.length === 0 ? known.table : buildTable(route.name, [], this.#sums))
    if (known && known.table === table && sameParts(known.own, own) && Buffer.compare(known.extra, extra) === 0 && isUsable(known.resource))
      return known.resource
    const places = this.#shared.routes.get(route.name)?.claims.places
    const resource = routeResource(
      table,
      hiddenHosts.flatMap((host) => places?.get(host) ?? []),
      pieces,
      extra,
      this.#sums,
    )
    this.#resources.set(route.name, { own, table, extra, resource })
    return resource
  }
}

const sameParts = (one: OwnRoute, other: OwnRoute): boolean => sameItems(one.hiddenHosts, other.hiddenHosts) && sameItems(one.pieces, other.pieces)

/**
 * Finds the hosts that differ for a namespace, including all hosts whose domains may change owner because of them, and the virtual hosts
 * that the namespace has in their place.
 */
class Differing {
  readonly #shared: SharedRoutes
  readonly #maker: HostMaker
  readonly #problems: Problem[]
  readonly hosts = new Set<string>()
  readonly candidates = new Map<string, Candidate[]>()
  readonly domains = new Set<number>()
  #queue: string[] = []

  constructor(shared: SharedRoutes, maker: HostMaker, hosts: Iterable<string>, problems: Problem[]) {
    this.#shared = shared
    this.#maker = maker
    this.#problems = problems
    this.#queue = [...hosts]
    const [egress] = maker.view.egress
    // Where the shared routes have no route 80, the first service that the namespace has on it brings in every host without a service.
    if (egress && !shared.routes.has('80')) this.#queue.push(...egress.virtualServices.hosts())
    do {
      for (let host = this.#queue.pop(); host !== undefined; host = this.#queue.pop()) if (!this.hosts.has(host)) this.#add(host)
      this.#addVanished()
    } while (this.#queue.length > 0)
  }

  /** Whether a route has a virtual host of a service, or needs none. */
  exists(name: string): boolean {
    const shared = this.#shared.routes.get(name)
    const hidden = shared
      ? [...this.hosts].reduce((sum, host) => sum + (shared.claims.places.get(host) ?? []).filter((place) => isService(shared, place)).length, 0)
      : 0
    const candidates = this.candidates.get(name) ?? []
    if ((shared?.route ?? candidates[0]?.route)?.isFixed) return true
    const own = candidates.filter(({ namespace }) => namespace !== '').length
    // In that case the existence of the route depends on the services of the shared route.
    if (own === 0) this.domains.add(servicesOf(name))
    return (shared?.serviceCount ?? 0) - hidden + own > 0
  }

  /** Hides all hosts of a shared route that does not exist for the namespace. */
  #addVanished(): void {
    for (const name of new Set([...this.hosts].flatMap((host) => this.#shared.routesOf(host)))) {
      if (this.exists(name)) continue
      this.domains.add(hostsOf(name))
      for (const host of this.#shared.routes.get(name)?.claims.places.keys() ?? []) if (!this.hosts.has(host)) this.#queue.push(host)
    }
  }

  #add(host: string): void {
    const shared = this.#shared
    this.hosts.add(host)
    this.domains.add(isCommon(host) ? everyRoute : placesOf(host))
    const before = shared.routesOf(host).flatMap((name) => {
      const route = shared.routes.get(name) as SharedRoute
      return (route.claims.places.get(host) ?? []).map((place) => route.hosts[place] as SharedRoute['hosts'][number])
    })
    for (const { candidate, claims } of before) this.#claim(candidate.route.name, claims, host)
    const own = contain<Candidate[]>(
      () => this.#ownOf(host),
      (reason) => {
        this.#problems.push(this.#maker.problem(host, reason))
        return []
      },
    )
    // Virtual hosts that belong to no service and no VirtualService are the same for all callers.
    const common = isCommon(host) ? before.map(({ candidate }) => candidate) : []
    for (const candidate of [...own, ...common]) {
      const { name } = candidate.route
      append(this.candidates, name, candidate)
      this.#claim(name, candidate.make().piece?.domains ?? [], host)
    }
  }

  #ownOf(host: string): Candidate[] {
    const { view } = this.#maker
    const [egress] = view.egress
    if (!egress) return []
    const state = view.service(host)
    return [...(state ? this.#maker.ofService(state, egress) : []), ...this.#maker.ofHost(host, egress)]
  }

  #claim(route: string, domains: readonly string[], host: string): void {
    this.domains.add(wholeRoute(route))
    for (const domain of domains) this.domains.add(domainOf(route, domain))
    this.#queue.push(...this.#shared.otherClaimants(route, domains, host))
  }
}

const isCommon = (host: string): boolean => host === '*' || host.startsWith('+')
const isService = (route: SharedRoute, place: number): boolean => route.hosts[place]?.candidate.namespace !== ''
