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
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { listed, noHosts } from '../host-list.ts'
import { Digests, domainOf, everyRoute, hostsOf, placesOf, RouteClaims, servicesOf, wholeRoute } from './claims.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { changeHosts, claimDomains, type HostsChange, inOrder, problemsOf, type RouteHost, servicesIn } from './route-hosts.ts'
import { candidatesIn, changesIn, madeOnce, maxChanged, maxReplaced, type Replaced, type SharedRoute, type SharedRoutes } from './shared-routes.ts'

/** A route as a namespace sees it. */
interface OwnRoute {
  readonly route: RouteName
  /** Whether the shared routes contain the route. */
  readonly isShared: boolean
  /** Hosts of the shared route that are hidden. */
  readonly hiddenHosts: readonly string[]
  /** The namespace's own virtual hosts in the route, in the order of their claims. */
  readonly claims: RouteClaims
  /** Whether the route exists: it has a virtual host of a service left, or needs none. */
  readonly exists: boolean
  /** Whether the route is equal to the shared one. */
  readonly isAsShared: boolean
  /** Fields that EnvoyFilters add, for a route that is not shared. */
  readonly extra: Uint8Array
  /** Problems of the virtual hosts. */
  readonly problems: readonly Problem[]
}

/** A namespace's own resources of a type, and the shared ones that are hidden from it. */
export interface Overlay {
  readonly resources: readonly Resource[]
  /** Names of routes, or hosts, whose shared resources are hidden; sorted. */
  readonly hide: readonly string[]
}

/** The routes of one namespace in one view. */
export class OwnRoutes {
  readonly #record: Pick<Dependencies<never>, 'collection'>
  readonly #shared: SharedRoutes
  readonly #sums: KeyedSums
  /** By name, sorted. */
  #routes: ReadonlyMap<string, OwnRoute> = new Map()
  /** Problems that belong to no host of a route. */
  #problems: readonly Problem[] = []
  /** The hosts that may differ, as given to the last refresh. */
  #given = noHosts
  /** The hosts that differ: those given, and those that claim a domain together with one of them. */
  #differing = new Set<string>()
  /** The candidates of each host that differs, for the view and the filters in `#inputs`. */
  #candidates: Collection<readonly Candidate[]>
  #inputs: readonly unknown[] = []
  /** Digests of the domains that its hosts claim, both in its own form and in the shared form, and of the routes ({@link domainOf}). */
  #domains = new Digests([])
  #claimRevision: object = {}
  /** The states of the claim log up to which changes were checked, and up to which they are contained in the routes. */
  #checkedAt = -1
  #refreshedAt = -1
  /** The number of the present state, and the last virtual hosts that were changed in place. */
  #at = 0
  #replaced: Replaced[] = []
  /** The hidden hosts, computed on first use. */
  #hidden: readonly string[] | undefined
  /** The last resources, reused while their parts are the same. */
  readonly #resources = new Map<string, Known>()

  constructor(record: Pick<Dependencies<never>, 'collection'>, shared: SharedRoutes, sums: KeyedSums) {
    this.#record = record
    this.#candidates = record.collection()
    this.#shared = shared
    this.#sums = sums
  }

  /** Names of the routes in which the namespace has hosts of its own or hides shared ones. */
  get names(): readonly string[] {
    return [...this.#routes.keys()]
  }

  /** Returns a new object whenever a change of the claims in the shared routes may change these routes. */
  claimRevision(): object {
    const { claimLog } = this.#shared
    if (claimLog.concerns(this.#domains, this.#checkedAt)) this.#claimRevision = {}
    else if (this.#refreshedAt === this.#checkedAt) this.#refreshedAt = claimLog.at
    this.#checkedAt = claimLog.at
    return this.#claimRevision
  }

  /** Whether some hosts are equal to the shared ones. They have to be compared again when the shared form changes. */
  get hasRoutesAsShared(): boolean {
    for (const { isAsShared, hiddenHosts } of this.#routes.values()) if (isAsShared && hiddenHosts.length > 0) return true
    return false
  }

  /** Problems of the last refresh. */
  get problems(): readonly Problem[] {
    return [...this.#problems, ...[...this.#routes.values()].flatMap(({ problems }) => problems)]
  }

  /** The number of the present state of the virtual hosts. */
  get at(): number {
    return this.#at
  }

  /** Updates the routes to the maker's view. `hosts` are those that may differ from the shared routes. */
  refresh(maker: HostMaker, hosts: readonly string[]): void {
    const inputs = [maker.view, ...maker.filters]
    const isSame = sameItems(inputs, this.#inputs)
    if (!isSame) this.#candidates = this.#record.collection()
    this.#inputs = inputs
    const relisted = new Set<string>()
    this.#given = listed(hosts, this.#given, relisted)
    const moved = this.#shared.claimLog.hostsSince(this.#refreshedAt)
    this.#refreshedAt = this.#shared.claimLog.at
    if (!isSame || !moved || !this.#changeInPlace(maker, relisted, moved)) this.#refreshAll(maker)
    this.#candidates.keep(this.#differing)
    this.#candidates.read()
  }

  #refreshAll(maker: HostMaker): void {
    const shared = this.#shared
    const problems: Problem[] = []
    const before = this.#routes
    const differing = new Differing(shared, maker, this.#given.set, (host) => this.#candidatesOf(host, maker), problems)
    this.#domains = new Digests(differing.domains)
    this.#differing = differing.hosts
    const names = new Set([...differing.candidates.keys(), ...[...differing.hosts].flatMap((host) => shared.routesOf(host))])
    const routes = [...names].sort().flatMap((name) =>
      contain<readonly OwnRoute[]>(
        () => [this.#ownRoute(name, differing, maker, before.get(name), problems)],
        (reason) => {
          problems.push({ type: 'rds', resource: name, objects: [], reason })
          const kept = before.get(name)
          return kept ? [kept] : []
        },
      ),
    )
    this.#routes = new Map(routes.map((own) => [own.route.name, own]))
    this.#problems = problems
    this.#at++
    this.#replaced = []
    this.#hidden = undefined
    for (const name of this.#resources.keys()) if (!names.has(name)) this.#resources.delete(name)
  }

  /** The candidates of a host, made once. */
  #candidatesOf(host: string, maker: HostMaker): readonly Candidate[] {
    const { view } = maker
    const make = () => {
      const [egress] = view.egress
      const state = egress && view.service(host)
      return egress ? [...(state ? maker.ofService(state, egress) : []), ...maker.ofHost(host, egress)].map(madeOnce) : []
    }
    return this.#candidates.get(host, make).value
  }

  /**
   * Changes in place the hosts that were `relisted`, those whose candidates are outdated, and those that `moved` in the shared routes; at a
   * cost proportional to their number. Returns false, with all routes unchanged, when a domain of one of them concerns another host.
   */
  #changeInPlace(maker: HostMaker, relisted: ReadonlySet<string>, moved: ReadonlyMap<string, readonly number[]>): boolean {
    if (this.#problems.length > 0 || !maker.view.egress[0] || !this.#shared.routes.has('80')) return false
    const changed = new Set([...relisted, ...this.#candidates.outdated])
    for (const [host, digests] of moved)
      if (this.#differing.has(host) || changed.has(host)) changed.add(host)
      else if (digests.some((digest) => this.#domains.has(digest))) return false
    if (changed.size > maxChanged) return false
    const changes = this.#changesOf(changed, relisted, maker)
    if (!changes) return false
    const settled: Settled[] = []
    for (const [name, candidates] of changes) {
      const one = this.#settle(name, candidates, new Set([...relisted, ...moved.keys()]))
      if (!one) return false
      settled.push(one)
    }
    for (const host of relisted) {
      if (this.#given.set.has(host)) this.#differing.add(host)
      else this.#differing.delete(host)
      this.#domains.add(placesOf(host))
    }
    this.#take(settled, relisted.size + moved.size > 0 ? changed : new Set())
    return true
  }

  /** By route the candidates of each changed host. Undefined when one is common to all routes, there for its domains, or has none. */
  #changesOf(changed: ReadonlySet<string>, relisted: ReadonlySet<string>, maker: HostMaker) {
    const changes = new Map<string, Map<string, Candidate[]>>()
    for (const host of changed) {
      const isGiven = this.#given.set.has(host)
      if (isCommon(host) || (!isGiven && !relisted.has(host))) return undefined
      const candidates = contain<readonly Candidate[] | undefined>(
        () => (isGiven ? this.#candidatesOf(host, maker) : []),
        () => undefined,
      )
      if (!candidates) return undefined
      for (const name of this.#shared.routesOf(host)) candidatesIn(changes, name).set(host, [])
      for (const [name, { claims }] of this.#routes) if (claims.has(host)) candidatesIn(changes, name).set(host, [])
      for (const candidate of candidates) {
        const there = candidatesIn(changes, candidate.route.name)
        there.set(host, [...(there.get(host) ?? []), candidate])
      }
    }
    return changes
  }

  /** Changes the hosts of one route. Undefined when the route has to be settled as a whole. `placed`: hosts that may be hidden or not now. */
  #settle(name: string, candidates: ReadonlyMap<string, readonly Candidate[]>, placed: ReadonlySet<string>): Settled | undefined {
    const [before, shared] = [this.#routes.get(name), this.#shared.routes.get(name)]
    if (!before?.exists || !before.isShared || !shared) return undefined
    const change = changeHosts(before.route, before.claims, candidates)
    if (!change) return undefined
    const moving = [...candidates.keys()].filter((host) => placed.has(host) || change.moved.has(host))
    if (moving.length === 0) return { before, change, hiddenHosts: before.hiddenHosts }
    for (const host of moving) {
      const entries = [...shared.claims.of(host), ...before.claims.of(host), ...(change.changed.get(host) ?? [])]
      const domains = entries.flatMap(({ claims }) => claims)
      if (this.#shared.otherClaimants(name, domains, host).length > 0) return undefined
      for (const domain of domains) {
        if ((before.claims.owners.get(domain) ?? host) !== host || before.claims.contested.has(domain)) return undefined
        this.#domains.add(domainOf(name, domain))
      }
      this.#domains.add(wholeRoute(name))
    }
    const hiddenHosts = withHosts(before.hiddenHosts, moving, (host) => this.#given.set.has(host) && shared.claims.has(host))
    const services = servicesIn(before.claims.hosts) + change.services
    const hidden = hiddenHosts.reduce((sum, host) => sum + servicesIn(shared.claims.of(host)), 0)
    // Otherwise the existence of the route depends on the services of the shared route.
    return services > 0 && shared.serviceCount - hidden + services > 0 ? { before, change, hiddenHosts } : undefined
  }

  /** Takes the changes of routes. `placed`: hosts that may be hidden or not now. */
  #take(settled: readonly Settled[], placed: ReadonlySet<string>): void {
    const wasAsShared = this.#isAsShared
    const routes = new Map(this.#routes)
    for (const { before, change, hiddenHosts } of settled) {
      const hasProblems = before.problems.length > 0 || [...change.changed.values()].flat().some(({ problems }) => problems.length > 0)
      before.claims.change(change)
      if (change.made.length + change.gone.length + change.moved.size > 0 || hiddenHosts !== before.hiddenHosts) {
        this.#replaced.push({ route: before.route, hosts: change.made, gone: change.gone })
        this.#at++
      }
      routes.set(before.route.name, {
        ...before,
        hiddenHosts,
        isAsShared: before.isAsShared || hiddenHosts.length <= fewHosts,
        problems: hasProblems ? problemsOf(change.hosts) : before.problems,
      })
    }
    for (const [name, own] of routes) {
      if (!own.isAsShared) continue
      const shared = this.#shared.routes.get(name)
      const isAsShared = own.exists && shared !== undefined && samePieces(piecesOf(shared, own.hiddenHosts), own.claims)
      if (!isAsShared) routes.set(name, { ...own, isAsShared })
    }
    this.#routes = routes
    this.#hidden = this.#hidden && withHosts(this.#hidden, [...placed], (host) => this.#hides(host))
    if (this.#isAsShared !== wasAsShared) {
      this.#at++
      this.#replaced = []
    }
    this.#replaced.splice(0, this.#replaced.length - maxReplaced)
  }

  /** Whether the virtual hosts of all routes are as shared. */
  get #isAsShared(): boolean {
    for (const { route, isAsShared } of this.#routes.values()) if (route.catchAll && !isAsShared) return false
    return true
  }

  /** Whether a virtual host of a service or VirtualService is hidden in the shared routes. The name of its host is that of the virtual host. */
  #hides(host: string): boolean {
    if (!this.#differing.has(host)) return false
    return this.#shared.routesOf(host).some((name) => {
      const shared = this.#shared.routes.get(name)
      return shared?.route.catchAll === true && this.#routes.has(name) && shared.claims.of(host).some(({ piece }) => piece)
    })
  }

  #ownRoute(name: string, differing: Differing, maker: HostMaker, before: OwnRoute | undefined, problems: Problem[]): OwnRoute {
    const shared = this.#shared.routes.get(name)
    const own = differing.candidates.get(name) ?? []
    const route = shared?.route ?? (own[0] as Candidate).route
    const hiddenHosts = shared ? [...differing.hosts].filter((host) => shared.claims.has(host)).sort() : []
    const hiddenPieces = piecesOf(shared, hiddenHosts)
    const exists = differing.exists(name)
    const candidates = shared ? own : [...own, ...maker.ofRoute(route)]
    const lastGood = (host: string) =>
      before?.claims.hosts.find(({ piece }) => piece?.name === host)?.piece ?? hiddenPieces.find((piece) => piece.name === host)
    const routeHosts = claimDomains(route, exists ? [...candidates].sort(inOrder) : [], lastGood)
    const claims = new RouteClaims(routeHosts.hosts)
    const isAsShared = exists && shared !== undefined && samePieces(hiddenPieces, claims)
    const extra = shared ? new Uint8Array() : maker.patched(problems, (patches) => routeConfigurationExtra(route.name, patches))
    return { route, isShared: shared !== undefined, hiddenHosts, claims, exists, isAsShared, extra, problems: routeHosts.problems }
  }

  /** Route configurations. Those whose virtual hosts are resources of their own contain no hosts. */
  configurations(takesVirtualHosts: boolean): Overlay {
    const hostless = ({ route }: OwnRoute) => takesVirtualHosts && route.catchAll
    const touched = [...this.#routes.values()].filter((own) => !own.isAsShared && (!hostless(own) || !own.isShared || !own.exists))
    return {
      resources: touched.flatMap((own) =>
        own.exists ? [hostless(own) ? hostlessRoute(own.route.name, this.#extraOf(own)) : this.#resource(own)] : [],
      ),
      hide: touched.flatMap(({ isShared, route }) => (isShared ? [route.name] : [])).sort(),
    }
  }

  /**
   * Virtual hosts as resources of their own: with `since`, a number of an earlier state ({@link at}), only those that changed since, if that
   * is known. A host is hidden from all routes or from none.
   */
  hosts(since?: number): Overlay & { readonly gone: readonly string[] | undefined } {
    const routes = [...this.#routes.values()].filter(({ route }) => route.catchAll)
    if (this.#isAsShared) return { resources: [], hide: [], gone: undefined }
    this.#hidden ??= hiddenIn(this.#shared, routes)
    const hide = this.#hidden
    const count = since === undefined ? Number.POSITIVE_INFINITY : this.#at - since
    if (count > this.#replaced.length)
      return { resources: routes.flatMap(({ route, claims }) => resourcesOf(route, claims.hosts)), hide, gone: undefined }
    const { resources, gone } = changesIn(this.#replaced.slice(this.#replaced.length - count))
    return { resources, gone, hide }
  }

  #extraOf({ route, extra }: OwnRoute): Uint8Array {
    return this.#shared.routes.get(route.name)?.extra ?? extra
  }

  #resource(own: OwnRoute): Resource {
    const { route, hiddenHosts, claims } = own
    const pieces = claims.hosts.flatMap(({ piece }) => piece ?? [])
    const extra = this.#extraOf(own)
    const known = this.#resources.get(route.name)
    const table =
      this.#shared.tableOf(route.name) ?? (known && known.table.pieces.length === 0 ? known.table : buildTable(route.name, [], this.#sums))
    if (
      known &&
      known.table === table &&
      sameItems(known.hiddenHosts, hiddenHosts) &&
      sameItems(known.pieces, pieces) &&
      Buffer.compare(known.extra, extra) === 0 &&
      isUsable(known.resource)
    )
      return known.resource
    const there = this.#shared.routes.get(route.name)?.claims
    const resource = routeResource(
      table,
      hiddenHosts.flatMap((host) => there?.placesOf(host) ?? []),
      pieces,
      extra,
      this.#sums,
    )
    this.#resources.set(route.name, { hiddenHosts, pieces, table, extra, resource })
    return resource
  }
}

/** A resource with the parts that it was made of. */
interface Known {
  readonly hiddenHosts: readonly string[]
  readonly pieces: readonly HostPiece[]
  readonly table: RouteTable
  readonly extra: Uint8Array
  readonly resource: Resource
}

/** A route with the change of its hosts. */
interface Settled {
  readonly before: OwnRoute
  readonly change: HostsChange
  readonly hiddenHosts: readonly string[]
}

/** Returns a sorted list in which each of some hosts is or is not. */
function withHosts(sorted: readonly string[], hosts: readonly string[], isThere: (host: string) => boolean): readonly string[] {
  let list: string[] | undefined
  for (const host of hosts) {
    let [from, to] = [0, (list ?? sorted).length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (((list ?? sorted)[middle] as string) < host) from = middle + 1
      else to = middle
    }
    const was = (list ?? sorted)[from] === host
    if (was === isThere(host)) continue
    list ??= [...sorted]
    if (was) list.splice(from, 1)
    else list.splice(from, 0, host)
  }
  return list ?? sorted
}

/**
 * Finds the hosts that differ for a namespace, including all hosts whose domains may change owner because of them, and the virtual hosts
 * that the namespace has in their place.
 */
class Differing {
  readonly #shared: SharedRoutes
  readonly #maker: HostMaker
  readonly #candidatesOf: (host: string) => readonly Candidate[]
  readonly #problems: Problem[]
  readonly hosts = new Set<string>()
  readonly candidates = new Map<string, Candidate[]>()
  readonly domains = new Set<number>()
  #queue: string[] = []

  constructor(
    shared: SharedRoutes,
    maker: HostMaker,
    hosts: Iterable<string>,
    candidatesOf: (host: string) => readonly Candidate[],
    problems: Problem[],
  ) {
    this.#shared = shared
    this.#maker = maker
    this.#candidatesOf = candidatesOf
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
    const hidden = shared ? [...this.hosts].reduce((sum, host) => sum + servicesIn(shared.claims.of(host)), 0) : 0
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
      for (const host of this.#shared.routes.get(name)?.claims.names() ?? []) if (!this.hosts.has(host)) this.#queue.push(host)
    }
  }

  #add(host: string): void {
    const shared = this.#shared
    this.hosts.add(host)
    this.domains.add(isCommon(host) ? everyRoute : placesOf(host))
    const before = shared.routesOf(host).flatMap((name) => shared.routes.get(name)?.claims.of(host) ?? [])
    for (const { candidate, claims } of before) this.#claim(candidate.route.name, claims, host)
    const own = contain<readonly Candidate[]>(
      () => this.#candidatesOf(host),
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

  #claim(route: string, domains: readonly string[], host: string): void {
    this.domains.add(wholeRoute(route))
    for (const domain of domains) this.domains.add(domainOf(route, domain))
    this.#queue.push(...this.#shared.otherClaimants(route, domains, host))
  }
}

const isCommon = (host: string): boolean => host === '*' || host.startsWith('+')

/** The maximum number of hidden hosts for which a change in place looks whether a route has become equal to the shared one. */
const fewHosts = 64

/** The virtual hosts of some hosts in a shared route. */
const piecesOf = (shared: SharedRoute | undefined, hosts: readonly string[]): HostPiece[] =>
  hosts.flatMap((host) => (shared?.claims.of(host) ?? []).flatMap(({ piece }) => piece ?? []))

/** Whether the virtual hosts of a route are these, in any order. */
function samePieces(pieces: readonly HostPiece[], { hosts }: RouteClaims): boolean {
  const own = hosts.flatMap(({ piece }) => piece ?? [])
  if (pieces.length !== own.length) return false
  const versions = new Set(own.map(({ version }) => version))
  return pieces.every(({ version }) => versions.has(version))
}

const resourcesOf = (route: RouteName, hosts: readonly RouteHost[]): Resource[] =>
  hosts.flatMap(({ piece }) => (piece ? [hostResource(route.name, piece)] : []))

/** Names of the hidden hosts of the shared routes, sorted. */
function hiddenIn(shared: SharedRoutes, routes: readonly OwnRoute[]): string[] {
  const hidden = routes.flatMap(({ hiddenHosts, route }) =>
    piecesOf(shared.routes.get(route.name), hiddenHosts).map(({ name }) => hostOf(virtualHostType, `${route.name}/${name}`)),
  )
  return [...new Set(hidden)].sort()
}
