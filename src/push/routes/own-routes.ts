/**
 * The routes of a namespace: the shared routes, except for hosts that differ. These are the namespace's own hosts, which it may call by
 * short names, and hosts in which its view differs. Because a domain has one owner in a route, all hosts that claim a domain together with
 * one of these differ too.
 */

import { contain } from '../../model/faults.ts'
import { sameItems } from '../../model/lists.ts'
import type { Problem } from '../../xds/draft.ts'
import { routeConfigurationExtra } from '../../xds/envoy-filter/routes.ts'
import { hostOf } from '../../xds/names.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import { virtualHostType } from '../../xds/type-urls.ts'
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { listed, noHosts } from '../host-list.ts'
import { Digests, domainOf, placesOf, wholeRoute } from './claim-log.ts'
import { Differing, isCommon } from './differing.ts'
import { ChangedHosts, HostChanges, madeOnce, maxChanged } from './host-changes.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { OwnRoute, piecesOf } from './route.ts'
import { claimDomains, type HostsChange, inOrder, problemsOf, servicesIn } from './route-hosts.ts'
import type { SharedRoutes } from './shared-routes.ts'

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
  /** For the group of virtual hosts. */
  readonly changes = new HostChanges()
  /** The hidden hosts, computed on first use. */
  #hidden: readonly string[] | undefined

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
    this.#routes = new Map(routes.map((own) => [own.name, own]))
    this.#problems = problems
    this.changes.restart()
    this.#hidden = undefined
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
    const changes = new ChangedHosts()
    for (const host of changed) {
      const isGiven = this.#given.set.has(host)
      if (isCommon(host) || (!isGiven && !relisted.has(host))) return undefined
      const candidates = contain<readonly Candidate[] | undefined>(
        () => (isGiven ? this.#candidatesOf(host, maker) : []),
        () => undefined,
      )
      if (!candidates) return undefined
      for (const name of this.#shared.routesOf(host)) changes.in(name).set(host, [])
      for (const [name, own] of this.#routes) if (own.has(host)) changes.in(name).set(host, [])
      for (const candidate of candidates) {
        const there = changes.in(candidate.route.name)
        there.set(host, [...(there.get(host) ?? []), candidate])
      }
    }
    return changes
  }

  /** Changes the hosts of one route. Undefined when the route has to be settled as a whole. `placed`: hosts that may be hidden or not now. */
  #settle(name: string, candidates: ReadonlyMap<string, readonly Candidate[]>, placed: ReadonlySet<string>): Settled | undefined {
    const [route, shared] = [this.#routes.get(name), this.#shared.routes.get(name)]
    if (!route?.exists || !route.isShared || !shared) return undefined
    const change = route.settle(candidates)
    if (!change) return undefined
    const moving = [...candidates.keys()].filter((host) => placed.has(host) || change.moved.has(host))
    if (moving.length === 0) return { route, change, hiddenHosts: route.hiddenHosts }
    for (const host of moving) {
      const entries = [...shared.of(host), ...route.of(host), ...(change.changed.get(host) ?? [])]
      const domains = entries.flatMap(({ claims }) => claims)
      if (shared.otherClaimants(domains, host).length > 0) return undefined
      for (const domain of domains) {
        if ((route.owners.get(domain) ?? host) !== host || route.contested.has(domain)) return undefined
        this.#domains.add(domainOf(name, domain))
      }
      this.#domains.add(wholeRoute(name))
    }
    const hiddenHosts = withHosts(route.hiddenHosts, moving, (host) => this.#given.set.has(host) && shared.has(host))
    const services = servicesIn(route.hosts) + change.services
    // Otherwise the existence of the route depends on the services of the shared route that are not hidden.
    return services > 0 ? { route, change, hiddenHosts } : undefined
  }

  /** Takes the changes of routes. `placed`: hosts that may be hidden or not now. */
  #take(settled: readonly Settled[], placed: ReadonlySet<string>): void {
    const wasAsShared = this.#isAsShared
    const compared = new Set([...this.#routes.values()].filter(({ isAsShared }) => isAsShared))
    for (const { route, change, hiddenHosts } of settled) {
      if (route.change(change, hiddenHosts)) this.changes.replaced(route.id, change)
      if (hiddenHosts.length <= fewHosts) compared.add(route)
    }
    for (const route of compared) route.compare(this.#shared.routes.get(route.name))
    this.#hidden = this.#hidden && withHosts(this.#hidden, [...placed], (host) => this.#hides(host))
    if (this.#isAsShared !== wasAsShared) this.changes.restart()
  }

  /** Whether the virtual hosts of all routes are as shared. */
  get #isAsShared(): boolean {
    for (const { id, isAsShared } of this.#routes.values()) if (id.catchAll && !isAsShared) return false
    return true
  }

  /** Whether a virtual host of a service or VirtualService is hidden in the shared routes. The name of its host is that of the virtual host. */
  #hides(host: string): boolean {
    if (!this.#differing.has(host)) return false
    return this.#shared.routesOf(host).some((name) => {
      const shared = this.#shared.routes.get(name)
      return shared?.id.catchAll === true && this.#routes.has(name) && shared.of(host).some(({ piece }) => piece)
    })
  }

  #ownRoute(name: string, differing: Differing, maker: HostMaker, before: OwnRoute | undefined, problems: Problem[]): OwnRoute {
    const shared = this.#shared.routes.get(name)
    const own = differing.candidates.get(name) ?? []
    const id = shared?.id ?? (own[0] as Candidate).route
    const hiddenHosts = shared ? [...differing.hosts].filter((host) => shared.has(host)).sort() : []
    const exists = differing.exists(name)
    const candidates = shared ? own : [...own, ...maker.ofRoute(id)]
    const lastGood = (host: string) =>
      before?.hosts.find(({ piece }) => piece?.name === host)?.piece ?? piecesOf(shared, hiddenHosts).find((piece) => piece.name === host)
    const hosts = claimDomains(id, exists ? [...candidates].sort(inOrder) : [], lastGood)
    const extra = shared ? new Uint8Array() : maker.patched(problems, (patches) => routeConfigurationExtra(name, patches))
    const place = { isShared: shared !== undefined, exists, hiddenHosts }
    const route = new OwnRoute(id, hosts, problemsOf(hosts), extra, place, before)
    route.compare(shared)
    return route
  }

  /** Route configurations. Those whose virtual hosts are resources of their own contain no hosts. */
  configurations(takesVirtualHosts: boolean): Overlay {
    const isHostless = ({ id }: OwnRoute) => takesVirtualHosts && id.catchAll
    const touched = [...this.#routes.values()].filter((own) => !own.isAsShared && (!isHostless(own) || !own.isShared || !own.exists))
    return {
      resources: touched.flatMap((own) => (own.exists ? own.configuration(this.#shared.routes.get(own.name), isHostless(own), this.#sums) : [])),
      hide: touched.flatMap(({ isShared, name }) => (isShared ? [name] : [])).sort(),
    }
  }

  /**
   * Virtual hosts as resources of their own: only those that changed since the group was made, if that is known. A host is hidden from all
   * routes or from none.
   */
  virtualHosts(): Overlay & { readonly gone: readonly string[] | undefined } {
    const routes = [...this.#routes.values()].filter(({ id }) => id.catchAll)
    if (this.#isAsShared) return { resources: [], hide: [], gone: undefined }
    this.#hidden ??= hiddenIn(this.#shared, routes)
    const hide = this.#hidden
    const changed = this.changes.sinceStored()
    return changed ? { ...changed, hide } : { resources: routes.flatMap((route) => route.virtualHosts()), hide, gone: undefined }
  }
}

/** A route with the change of its hosts. */
interface Settled {
  readonly route: OwnRoute
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

/** The maximum number of hidden hosts for which a change in place looks whether a route has become equal to the shared one. */
const fewHosts = 64

/** Names of the hidden hosts of the shared routes, sorted. */
function hiddenIn(shared: SharedRoutes, routes: readonly OwnRoute[]): string[] {
  const hidden = routes.flatMap(({ hiddenHosts, name }) =>
    piecesOf(shared.routes.get(name), hiddenHosts).map((piece) => hostOf(virtualHostType, `${name}/${piece.name}`)),
  )
  return [...new Set(hidden)].sort()
}
