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
import { buildTable, type HostPiece, hostResource, type RouteTable } from '../../xds/routes/route-table.ts'
import { lost, type Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { type HostList, listed, noHosts } from '../host-list.ts'
import { ClaimLog, domainOf, hostsOf, RouteClaims, servicesOf } from './claims.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { changeHosts, claimDomains, type HostsChange, inOrder, problemsOf, type RouteHost, type RouteHosts, servicesIn } from './route-hosts.ts'

/** A route of the shared routes. */
export interface SharedRoute extends RouteHosts {
  /** All virtual hosts of the route in one block. Empty where they are resources of their own. */
  readonly table: RouteTable
  /** Fields that EnvoyFilters add to the message. */
  readonly extra: Uint8Array
  /** Patches of the message that could not be applied. */
  readonly patches: readonly Problem[]
  /** The same object while the claims are the same, or only hosts with domains of their own come and go. */
  readonly claims: RouteClaims
  /** The number of virtual hosts that belong to services. A route without any does not exist. */
  readonly serviceCount: number
}

/** The candidates of an egress listener: those of services, and those of other hosts that VirtualServices name. */
interface EgressCandidates {
  readonly hosts: HostList
  readonly others: HostList
  readonly ofHosts: Collection<readonly Candidate[]>
  readonly ofOthers: Collection<readonly Candidate[]>
}

/** Virtual hosts of a route that came or were replaced in place, and the names of those that are gone. */
export interface Replaced {
  readonly route: RouteName
  readonly hosts: readonly RouteHost[]
  readonly gone: readonly string[]
}

/** The virtual hosts, as resources of their own, that changes in place leave, and the names of those that are gone after all of them. */
export function changesIn(replaced: readonly Replaced[]): { readonly resources: Resource[]; readonly gone: string[] } {
  const last = new Map<string, Resource | undefined>()
  for (const { route, hosts, gone } of replaced) {
    if (!route.catchAll) continue
    for (const name of gone) last.set(`${route.name}/${name}`, undefined)
    for (const { piece } of hosts) {
      const resource = piece && hostResource(route.name, piece)
      if (resource) last.set(resource.name, resource)
    }
  }
  const names = [...last.keys()]
  return { resources: [...last.values()].flatMap((resource) => resource ?? []), gone: names.filter((name) => !last.get(name)) }
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
  /** A new object whenever `#at` grows. */
  #revision: object = {}
  #routes = new Map<string, SharedRoute>()
  /** Names of the routes by host, computed on first use. */
  #routesOf: Map<string, readonly string[]> | undefined
  readonly #claimLog = new ClaimLog()
  /**
   * The number of the present state. It grows by one for each route with virtual hosts replaced in place, and for each build of all routes
   * that changed a route, or that has problems or follows one with problems.
   */
  #at = 0
  /** The last replacements in place, at most {@link maxReplaced}. Emptied when a build of all routes begins a new state. */
  #replaced: Replaced[] = []
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

  /** The table of a route. It is built again if its bytes were dropped because it had not been used for a while. */
  tableOf(name: string): RouteTable | undefined {
    const route = this.#routes.get(name)
    if (!route || route.table.block.slab !== lost) return route?.table
    const table = buildTable(name, route.table.pieces, this.#sums)
    this.#routes.set(name, { ...route, table })
    return table
  }

  /** The changes of domain ownership. */
  get claimLog(): Pick<ClaimLog, 'at' | 'concerns' | 'hostsSince'> {
    return this.#claimLog
  }

  /** The number of the present state. */
  get at(): number {
    return this.#at
  }

  /**
   * The virtual hosts replaced since state `at`, in their order. Undefined when something else changed, or when the record does not reach
   * back that far.
   */
  replacedSince(at: number): readonly Replaced[] | undefined {
    const count = this.#at - at
    return count > this.#replaced.length ? undefined : this.#replaced.slice(this.#replaced.length - count)
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

  /** The other hosts that claim one of these domains of a route. */
  otherClaimants(route: string, domains: readonly string[], host: string): string[] {
    const there = this.#routes.get(route)
    if (!there) return []
    return domains.flatMap((domain) => {
      const contested = there.claims.contested.get(domain)
      if (contested) return [...contested].filter((claimant) => claimant !== host)
      const owner = there.claims.owners.get(domain)
      return owner === undefined || owner === host ? [] : owner
    })
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
    const changes = new Map<string, Map<string, Candidate[]>>()
    for (const host of hosts) {
      for (const name of this.routesOf(host)) candidatesIn(changes, name).set(host, [])
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
        const there = candidatesIn(changes, route.name)
        const known = there.get(host) ?? []
        if (!known.some((other) => other.port === port)) there.set(host, [...known, candidate])
      }
    }
    return changes
  }

  /** Changes the hosts of each route. Undefined when one of the routes has to be settled as a whole. */
  #settle(changes: ReadonlyMap<string, ReadonlyMap<string, readonly Candidate[]>>): Settled[] | undefined {
    const settled: Settled[] = []
    for (const [name, candidates] of changes) {
      const before = this.#routes.get(name) as SharedRoute
      const change = changeHosts(before.route, before.claims, candidates)
      const serviceCount = before.serviceCount + (change?.services ?? 0)
      if (!change || (serviceCount === 0 && !before.route.isFixed)) return undefined
      settled.push({ name, before, change, serviceCount })
    }
    return settled
  }

  /** Takes the changes of routes. */
  #take(settled: readonly Settled[]): void {
    const moved = new Map<string, number[]>()
    for (const { name, before, change, serviceCount } of settled) {
      const { hosts, changed, made, gone } = change
      const hasProblems = [...changed].some(([host, now]) => [...now, ...before.claims.of(host)].some(({ problems }) => problems.length > 0))
      for (const [host, digests] of digestsOf(name, before, change)) append(moved, host, ...digests)
      for (const host of this.#routesOf ? change.moved : [])
        this.#routesOf?.set(host, withName(this.#routesOf.get(host), name, (changed.get(host)?.length ?? 0) > 0))
      before.claims.change(change)
      const isSameTable = made.length + gone.length + change.moved.size === 0
      const pieces = this.#hasTables || !before.route.catchAll ? hosts.map(({ piece }) => piece) : []
      this.#routes.set(name, {
        ...before,
        hosts,
        serviceCount,
        problems: hasProblems ? [...problemsOf(hosts), ...before.patches] : before.problems,
        table: isSameTable ? before.table : buildTable(name, pieces, this.#sums),
      })
      if (!isSameTable || hasProblems) this.#revision = {}
      if (isSameTable) continue
      this.#replaced.push({ route: before.route, hosts: made, gone })
      this.#at++
    }
    if (moved.size > 0) this.#claimLog.addHosts(moved)
    this.#replaced.splice(0, this.#replaced.length - maxReplaced)
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
    for (const [name, { route, candidates }] of byRoute(all, fixed)) {
      const before = this.#routes.get(name)
      const build = () => this.#build(route, candidates, changed, maker, before)
      const isSame = before && touched && !touched.has(name) && this.#common.isCurrent(name) && this.#problems.length === 0
      const made = isSame
        ? before
        : contain<SharedRoute | undefined>(build, (reason) => {
            problems.push({ type: 'rds', resource: name, objects: [], reason })
            return before
          })
      if (made) routes.set(name, made)
    }
    this.#common.keep(new Set(routes.keys()))
    const differs = (of: (route: SharedRoute) => unknown) =>
      routes.size !== this.#routes.size || [...routes].some(([name, route]) => of(route) !== of(this.#routes.get(name) ?? ({} as SharedRoute)))
    if (differs((route) => route) || hadLostHosts || problems.length + this.#problems.length + this.#lostHosts.size > 0) {
      this.#revision = {}
      this.#replaced = []
      this.#at++
    }
    const reclaimed = differs(({ claims }) => claims)
    if (reclaimed) this.#claimLog.add(this.#routes, routes)
    this.#problems = problems
    this.#routes = routes
    if (reclaimed) this.#routesOf = undefined
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

  #build(
    route: RouteName,
    services: readonly Candidate[],
    changed: ReadonlySet<string>,
    maker: HostMaker,
    before: SharedRoute | undefined,
  ): SharedRoute {
    const patches: Problem[] = []
    const extra = maker.patched(patches, (context) => routeConfigurationExtra(route.name, context))
    const { value: common, isNew } = this.#common.get(route.name, () => maker.ofRoute(route).map(madeOnce))
    const isWhole = before && !isNew && services.length + common.length === before.hosts.length
    const hosts = isWhole
      ? replaceHosts(
          before,
          services.filter(({ host }) => changed.has(host)),
        )
      : undefined
    const replaced = hosts && { route, hosts, problems: problemsOf(hosts) }
    const lastGood = (name: string): HostPiece | undefined => before?.hosts.find(({ piece }) => piece?.name === name)?.piece
    const routeHosts = replaced ?? claimDomains(route, [...services, ...common].sort(inOrder), lastGood)
    const problems = [...routeHosts.problems, ...patches]
    const claimed = before && (replaced || sameClaims(before, routeHosts)) ? before : undefined
    const same = claimed?.hosts.every(({ piece }, index) => piece === routeHosts.hosts[index]?.piece)
    if (claimed && same && sameItems(problems, claimed.problems) && Buffer.compare(claimed.extra, extra) === 0) return claimed
    if (claimed && same)
      return { ...claimed, hosts: routeHosts.hosts, claims: claimed.claims.replaceHosts(routeHosts.hosts), problems, patches, extra }
    const pieces = routeHosts.hosts.map(({ piece }) => piece)
    return {
      route,
      hosts: routeHosts.hosts,
      problems,
      patches,
      extra,
      table: buildTable(route.name, this.#hasTables || !route.catchAll ? pieces : [], this.#sums),
      claims: claimed?.claims.replaceHosts(routeHosts.hosts) ?? new RouteClaims(routeHosts.hosts),
      serviceCount: servicesIn(routeHosts.hosts),
    }
  }
}

/** A candidate whose virtual host is made once, unless domains have to be removed from it. */
export function madeOnce(candidate: Candidate): Candidate {
  const made = candidate.make()
  return { ...candidate, make: (without) => (without && without.size > 0 ? candidate.make(without) : made) }
}

/**
 * Replaces some virtual hosts of a route in place, if they claim the same domains as before and neither had nor have problems; those of other
 * hosts stay. Returns undefined when the route has to be built as a whole.
 */
function replaceHosts(before: SharedRoute, candidates: readonly Candidate[]): RouteHosts['hosts'] | undefined {
  const hosts = [...before.hosts]
  for (const candidate of candidates) {
    const places = before.claims.placesOf(candidate.host).filter((place) => before.hosts[place]?.candidate.port === candidate.port)
    const [place] = places
    const old = place === undefined ? undefined : hosts[place]
    if (!old || place === undefined || old.problems.length > 0 || places.length !== 1 || old.candidate.namespace !== candidate.namespace)
      return undefined
    const made = candidate.make()
    if (made.failed || made.problems.length > 0 || !made.piece || !old.piece) return undefined
    if (!sameItems(made.piece.domains, old.claims) || !sameItems(old.piece.domains, old.claims)) return undefined
    hosts[place] = { ...old, candidate, piece: made.piece }
  }
  return hosts
}

/** A route with the change of its hosts. */
interface Settled {
  readonly name: string
  readonly before: SharedRoute
  readonly change: HostsChange
  readonly serviceCount: number
}

/** By host that moved the digests of what the change concerns beside the places of the host. */
function digestsOf(name: string, { claims }: SharedRoute, { moved, changed, services, gained, lost }: HostsChange): Map<string, number[]> {
  const found = new Map<string, number[]>()
  for (const host of moved) {
    const isThere = (changed.get(host)?.length ?? 0) > 0
    found.set(host, [...(isThere === claims.has(host) ? [] : [hostsOf(name)]), ...(services === 0 ? [] : [servicesOf(name)])])
  }
  for (const [one, other] of [
    [lost, gained],
    [gained, lost],
  ] as const)
    for (const [domain, host] of one) if (!other.has(domain)) append(found, host, domainOf(name, domain))
  return found
}

/** Returns the candidates of a route by host, an empty map at first. */
export function candidatesIn(changes: Map<string, Map<string, Candidate[]>>, route: string): Map<string, Candidate[]> {
  let there = changes.get(route)
  if (!there) changes.set(route, (there = new Map()))
  return there
}

/** Returns names with or without one. */
function withName(names: readonly string[] = [], name: string, isThere: boolean): readonly string[] {
  if (names.includes(name) === isThere) return names
  return isThere ? [...names, name] : names.filter((other) => other !== name)
}

/** The maximum number of hosts that are changed in place. Above it, building all routes costs less. */
export const maxChanged = 1000

/** The maximum number of replacements that are kept for groups that contain the virtual hosts before. */
export const maxReplaced = 64

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

/** Whether the same hosts claim and own the same domains. */
function sameClaims(one: RouteHosts, other: RouteHosts): boolean {
  return (
    one.hosts.length === other.hosts.length &&
    one.hosts.every(({ piece, candidate, claims }, index) => {
      const peer = other.hosts[index] as RouteHosts['hosts'][number]
      if (candidate.host !== peer.candidate.host || candidate.namespace !== peer.candidate.namespace) return false
      return piece && piece === peer.piece ? true : sameItems(claims, peer.claims) && sameItems(piece?.domains ?? [], peer.piece?.domains ?? [])
    })
  )
}

function invert(routes: ReadonlyMap<string, SharedRoute>): Map<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const [name, { claims }] of routes) for (const host of claims.names()) append(found, host, name)
  return found
}
