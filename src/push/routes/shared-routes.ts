/**
 * The route configurations of a view as one caller sees them, kept from one snapshot to the next, with the owners of their domains. The
 * routes of the shared view are made for a caller without namespace and labels.
 */

import { contain } from '../../model/faults.ts'
import { append, sameItems } from '../../model/lists.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { Problem } from '../../xds/draft.ts'
import { routeConfigurationExtra } from '../../xds/envoy-filter/routes.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { type HostList, listed, noHosts } from '../host-list.ts'
import { ClaimLog, domainOf, hostsOf, servicesOf } from './claim-log.ts'
import { ChangedHosts, HostChanges, madeOnce, maxChanged } from './host-changes.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { type MadeRoute, SharedRoute } from './route.ts'
import { claimDomains, type HostsChange, inOrder, problemsOf } from './route-hosts.ts'

/** The candidates of an egress listener: those of services, and those of other hosts that VirtualServices name. */
interface EgressCandidates {
  readonly hosts: HostList
  readonly others: HostList
  readonly ofHosts: Collection<readonly Candidate[]>
  readonly ofOthers: Collection<readonly Candidate[]>
}

/** The routes of a view as one caller sees them, shared by all classes that see them alike. A new snapshot may replace the view. */
export class SharedRoutes {
  readonly #sums: KeyedSums
  readonly #hasTables: boolean
  readonly #record: Pick<Dependencies<never>, 'collection'>
  /** The candidates of each host by egress listener, for the view and the filters in `#inputs`. */
  #egressCandidates: readonly EgressCandidates[] = []
  /** By route the candidates that belong to no host of the view. */
  #common: Collection<readonly Candidate[]>
  #inputs: readonly unknown[] = []
  /** A new object whenever a virtual host, a message or a problem is another one. */
  #revision: object = {}
  /** For the group of virtual hosts. A build of all routes that changed one, has problems or follows one with problems restarts it. */
  readonly changes = new HostChanges()
  #routes = new Map<string, SharedRoute>()
  /** Names of the routes by host, computed on first use. */
  #routesOf: Map<string, readonly string[]> | undefined
  readonly #claimLog = new ClaimLog()
  /** Routes that could not be made. */
  #problems: readonly Problem[] = []
  /** Hosts whose candidates could not be determined. */
  readonly #lostHosts = new Map<string, Problem>()

  /** `hasTables`: route configurations with a catch-all contain their virtual hosts. Otherwise these are resources of their own. */
  constructor(record: Pick<Dependencies<never>, 'collection'>, sums: KeyedSums, hasTables: boolean) {
    this.#hasTables = hasTables
    this.#record = record
    this.#common = record.collection()
    this.#sums = sums
  }

  get routes(): ReadonlyMap<string, SharedRoute> {
    return this.#routes
  }

  get revision(): object {
    return this.#revision
  }

  /** The route configurations, for callers that see nothing otherwise. */
  configurations(): Resource[] {
    return [...this.#routes.values()].map((route) => route.configuration())
  }

  /** All virtual hosts as resources of their own. */
  virtualHosts(): Resource[] {
    return [...this.#routes.values()].flatMap((route) => (route.id.catchAll ? route.virtualHosts() : []))
  }

  /** The changes of domain ownership. */
  get claimLog(): Pick<ClaimLog, 'at' | 'concerns' | 'hostsSince'> {
    return this.#claimLog
  }

  /** All problems of the routes. */
  get problems(): readonly Problem[] {
    return [...this.#problems, ...this.#lostHosts.values(), ...[...this.#routes.values()].flatMap(({ problems }) => problems)]
  }

  /** Names of the routes that contain a host. */
  routesOf(host: string): readonly string[] {
    this.#routesOf ??= invert(this.#routes)
    return this.#routesOf.get(host) ?? []
  }

  /** Updates the routes to the maker's view. A route that cannot be made stays as it was. */
  refresh(maker: HostMaker): void {
    const { fixedRoutes } = maker
    const given = [maker.view, ...maker.filters, ...fixedRoutes]
    const isSame = sameItems(given, this.#inputs)
    if (!isSame) {
      this.#egressCandidates = []
      this.#common = this.#record.collection()
    }
    this.#inputs = given
    const changed = this.#listHosts(maker.view)
    if (!isSame || !changed || !this.#changeInPlace(maker, changed)) this.#buildAll(maker, fixedRoutes, isSame ? changed : undefined)
    this.#common.read()
    for (const { ofHosts, ofOthers } of this.#egressCandidates) {
      ofHosts.read()
      ofOthers.read()
    }
  }

  /** Lists the hosts of the view. Returns those that came or went; undefined when the egress listeners are others. */
  #listHosts(view: View): Set<string> | undefined {
    const before = this.#egressCandidates
    const changed = new Set<string>()
    this.#egressCandidates = view.egress.map((egress, index): EgressCandidates => {
      const {
        hosts = noHosts,
        others = noHosts,
        ofHosts = this.#record.collection<readonly Candidate[]>(),
        ofOthers = this.#record.collection<readonly Candidate[]>(),
      } = before[index] ?? {}
      return { hosts: listed(egress.hosts, hosts, changed), others: listed([...egress.virtualServices.hosts()], others, changed), ofHosts, ofOthers }
    })
    return before.length === this.#egressCandidates.length ? changed : undefined
  }

  /**
   * Changes the given hosts, and those whose candidates are outdated, in place, at a cost proportional to their number. Returns false, with
   * all routes unchanged, when a domain of one of them is claimed by another host, or more than hosts changed.
   */
  #changeInPlace(maker: HostMaker, hosts: Set<string>): boolean {
    const [wanted, more] = this.#egressCandidates
    const [egress] = maker.view.egress
    if (!wanted || !egress || more || this.#common.outdated.size > 0 || this.#problems.length > 0) return false
    for (const host of [...wanted.ofHosts.outdated, ...wanted.ofOthers.outdated]) hosts.add(host)
    if (hosts.size > maxChanged) return false
    const lostHosts = new Map<string, Problem>()
    const changes = this.#changesOf(wanted, egress, hosts, maker, lostHosts)
    const settled = changes && this.#settle(changes)
    if (!settled) return false
    wanted.ofHosts.keep(wanted.hosts.set)
    wanted.ofOthers.keep(wanted.others.set)
    const isMended = [...hosts].some((host) => this.#lostHosts.delete(host))
    for (const [host, problem] of lostHosts) this.#lostHosts.set(host, problem)
    if (isMended || lostHosts.size > 0) this.#revision = {}
    this.#take(settled)
    return true
  }

  /** By route the candidates of each changed host. Undefined when a route would have to be made, or a host would bring others into one. */
  #changesOf(wanted: EgressCandidates, egress: EgressListener, hosts: ReadonlySet<string>, maker: HostMaker, lostHosts: Map<string, Problem>) {
    const changes = new ChangedHosts()
    for (const host of hosts) {
      for (const name of this.routesOf(host)) changes.in(name).set(host, [])
      const candidates = contain<readonly Candidate[]>(
        () => [
          ...(wanted.hosts.set.has(host) ? this.#ofHost(wanted, host, maker, egress).value : []),
          ...(wanted.others.set.has(host) ? this.#ofOther(wanted, host, maker, egress).value : []),
        ],
        (reason) => {
          lostHosts.set(host, maker.problem(host, reason))
          return []
        },
      )
      for (const candidate of candidates) {
        const { route, namespace, port } = candidate
        if (!this.#routes.has(route.name)) {
          // A host without a service does not create a route.
          if (namespace !== '') return undefined
          continue
        }
        const there = changes.in(route.name)
        const known = there.get(host) ?? []
        if (!known.some((other) => other.port === port)) there.set(host, [...known, candidate])
      }
    }
    return changes
  }

  /** What the changed hosts make of each route. Undefined when one of the routes has to be settled as a whole. */
  #settle(changes: ChangedHosts): Settled[] | undefined {
    const settled: Settled[] = []
    for (const [name, candidates] of changes) {
      const route = this.#routes.get(name) as SharedRoute
      const change = route.settle(candidates)
      if (!change || (route.serviceCount + change.services === 0 && !route.id.isFixed)) return undefined
      settled.push({ route, change })
    }
    return settled
  }

  /** Takes the changes of routes. */
  #take(settled: readonly Settled[]): void {
    const moved = new Map<string, number[]>()
    for (const { route, change } of settled) {
      for (const [host, digests] of digestsOf(route, change)) append(moved, host, ...digests)
      for (const host of this.#routesOf ? change.moved : [])
        this.#routesOf?.set(host, withName(this.#routesOf.get(host), route.name, (change.changed.get(host)?.length ?? 0) > 0))
      const differs = route.change(change)
      if (differs.hosts || differs.problems) this.#revision = {}
      if (differs.hosts) this.changes.replaced(route.id, change)
    }
    if (moved.size > 0) this.#claimLog.addHosts(moved)
  }

  /** Builds all routes. */
  #buildAll(maker: HostMaker, fixed: readonly RouteName[], hosts: Set<string> | undefined): void {
    const problems: Problem[] = []
    const changed = hosts ?? new Set()
    const hadLostHosts = this.#lostHosts.size > 0
    const all = this.#candidates(maker, changed)
    // When the egress listeners are the same as before, only the routes of the changed hosts are built.
    const touched = hosts ? new Set([...changed].flatMap((host) => [...this.routesOf(host)])) : undefined
    if (touched) for (const candidate of all) if (changed.has(candidate.host)) touched.add(candidate.route.name)
    const routes = new Map<string, SharedRoute>()
    let differs = false
    for (const [name, { route: id, candidates }] of byRoute(all, fixed)) {
      const before = this.#routes.get(name)
      const isSame = before && touched && !touched.has(name) && this.#common.isCurrent(name) && this.#problems.length === 0
      const build = (): SharedRoute => {
        const { made, isClaimedAlike } = this.#make(id, candidates, changed, maker, before)
        if (!before || !isClaimedAlike) return new SharedRoute(id, made, this.#hasTables, this.#sums)
        differs = before.remake(made) || differs
        return before
      }
      const route = isSame
        ? before
        : contain<SharedRoute | undefined>(build, (reason) => {
            problems.push({ type: 'rds', resource: name, objects: [], reason })
            return before
          })
      if (route) routes.set(name, route)
    }
    this.#common.keep(new Set(routes.keys()))
    const isReclaimed = routes.size !== this.#routes.size || [...routes].some(([name, route]) => route !== this.#routes.get(name))
    if (differs || isReclaimed || hadLostHosts || problems.length + this.#problems.length + this.#lostHosts.size > 0) {
      this.#revision = {}
      this.changes.restart()
    }
    if (isReclaimed) this.#claimLog.add(this.#routes, routes)
    this.#problems = problems
    this.#routes = routes
    if (isReclaimed) this.#routesOf = undefined
  }

  /** The candidates of all hosts, in the order of egress listeners. `changed` receives the hosts whose candidates were computed again. */
  #candidates(maker: HostMaker, changed: Set<string>): readonly Candidate[] {
    const all: Candidate[] = []
    this.#lostHosts.clear()
    const take = (host: string, get: () => ReturnType<EgressCandidates['ofHosts']['get']>) =>
      contain(
        () => {
          const { value, isNew } = get()
          if (isNew) changed.add(host)
          for (const candidate of value) all.push(candidate)
        },
        (reason) => {
          changed.add(host)
          this.#lostHosts.set(host, maker.problem(host, reason))
        },
      )
    for (const [index, wanted] of this.#egressCandidates.entries()) {
      const egress = maker.view.egress[index] as EgressListener
      for (const host of wanted.hosts.list) take(host, () => this.#ofHost(wanted, host, maker, egress))
      for (const host of wanted.others.list) take(host, () => this.#ofOther(wanted, host, maker, egress))
      wanted.ofHosts.keep(wanted.hosts.set)
      wanted.ofOthers.keep(wanted.others.set)
    }
    return all
  }

  #ofHost({ ofHosts }: EgressCandidates, host: string, maker: HostMaker, egress: EgressListener) {
    return ofHosts.get(host, () => {
      const state = maker.view.service(host)
      return (state ? maker.ofService(state, egress) : []).map(madeOnce)
    })
  }

  #ofOther({ ofOthers }: EgressCandidates, host: string, maker: HostMaker, egress: EgressListener) {
    return ofOthers.get(host, () => maker.ofHost(host, egress).map(madeOnce))
  }

  /** Settles which host owns which domain of a route, of all candidates or, where claims cannot differ, of the changed ones. */
  #make(id: RouteName, services: readonly Candidate[], changed: ReadonlySet<string>, maker: HostMaker, before: SharedRoute | undefined) {
    const patches: Problem[] = []
    const extra = maker.patched(patches, (context) => routeConfigurationExtra(id.name, context))
    const { value: common, isNew } = this.#common.get(id.name, () => maker.ofRoute(id).map(madeOnce))
    const isWhole = before && !isNew && services.length + common.length === before.hosts.length
    const replaced = isWhole ? before.replaced(services.filter(({ host }) => changed.has(host))) : undefined
    const lastGood = (name: string) => before?.hosts.find(({ piece }) => piece?.name === name)?.piece
    const hosts = replaced ?? claimDomains(id, [...services, ...common].sort(inOrder), lastGood)
    const made: MadeRoute = { hosts, problems: [...problemsOf(hosts), ...patches], patches, extra }
    return { made, isClaimedAlike: replaced !== undefined || before?.hasSameClaims(hosts) === true }
  }
}

/** A route with the change of its hosts. */
interface Settled {
  readonly route: SharedRoute
  readonly change: HostsChange
}

/** By host that moves the digests of what the change concerns beside the places of the host. */
function digestsOf(route: SharedRoute, { moved, changed, services, gained, lost }: HostsChange): Map<string, number[]> {
  const found = new Map<string, number[]>()
  for (const host of moved) {
    const isThere = (changed.get(host)?.length ?? 0) > 0
    found.set(host, [...(isThere === route.has(host) ? [] : [hostsOf(route.name)]), ...(services === 0 ? [] : [servicesOf(route.name)])])
  }
  for (const [one, other] of [
    [lost, gained],
    [gained, lost],
  ] as const)
    for (const [domain, host] of one) if (!other.has(domain)) append(found, host, domainOf(route.name, domain))
  return found
}

/** Returns names with or without one. */
function withName(names: readonly string[] = [], name: string, isThere: boolean): readonly string[] {
  if (names.includes(name) === isThere) return names
  return isThere ? [...names, name] : names.filter((other) => other !== name)
}

/**
 * Groups candidates by route. Where several egress listeners have a route of the same name, a host and port belongs to the first of them
 * that has it.
 */
function byRoute(all: readonly Candidate[], fixed: readonly RouteName[]): Map<string, { route: RouteName; candidates: Candidate[] }> {
  const routes = new Map(fixed.map((route) => [route.name, { route, candidates: [] as Candidate[], ports: new Set<string>() }]))
  for (const candidate of all) {
    const { route, host, port } = candidate
    let there = routes.get(route.name)
    if (!there) routes.set(route.name, (there = { route, candidates: [], ports: new Set() }))
    const key = `${host}:${port}`
    if (there.ports.has(key)) continue
    there.ports.add(key)
    there.candidates.push(candidate)
  }
  // A host without a service does not create a route.
  for (const [name, { route, candidates }] of routes) if (!route.isFixed && candidates.every(({ namespace }) => namespace === '')) routes.delete(name)
  return routes
}

function invert(routes: ReadonlyMap<string, SharedRoute>): Map<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const [name, route] of routes) for (const host of route.names()) append(found, host, name)
  return found
}
