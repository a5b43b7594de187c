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
import { buildTable, type HostPiece, type RouteTable } from '../../xds/routes/route-table.ts'
import { lost } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { ClaimLog, RouteClaims } from './claims.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { claimDomains, inOrder, problemsOf, type RouteHosts } from './route-hosts.ts'

/** A route of the shared routes. */
export interface SharedRoute extends RouteHosts {
  /** All virtual hosts of the route in one block. Empty where they are resources of their own. */
  readonly table: RouteTable
  /** Fields that EnvoyFilters add to the message. */
  readonly extra: Uint8Array
  /** The same object while the claims are the same. */
  readonly claims: RouteClaims
  /** The number of virtual hosts that belong to services. A route without any does not exist. */
  readonly serviceCount: number
}

/** The candidates of an egress listener: those of services, and those of other hosts that VirtualServices name. */
interface EgressCandidates {
  readonly hosts: readonly string[]
  readonly others: readonly string[]
  readonly ofHosts: Collection<readonly Candidate[]>
  readonly ofOthers: Collection<readonly Candidate[]>
}

/** Virtual hosts of a route that were replaced in place. */
export type Replaced = Pick<SharedRoute, 'route' | 'hosts'>

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
  #routesOf: ReadonlyMap<string, readonly string[]> | undefined
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
  get claimLog(): Pick<ClaimLog, 'at' | 'concerns'> {
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
    return [...this.#problems, ...[...this.#routes.values()].flatMap(({ problems }) => problems)]
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
    const isListed = this.#listHosts(maker.view)
    const remade = new Set<string>()
    if (!isSame || !isListed || !this.#replaceInPlace(maker, remade)) this.#buildAll(maker, fixedRoutes, isListed, remade)
    this.#common.read()
    for (const { ofHosts, ofOthers } of this.#egressCandidates) {
      ofHosts.read()
      ofOthers.read()
    }
  }

  /** Lists the hosts of the view. Returns whether they are the same as before. */
  #listHosts(view: View): boolean {
    const before = this.#egressCandidates
    this.#egressCandidates = view.egress.map((egress, index): EgressCandidates => {
      const [hosts, others] = [egress.hosts, [...egress.virtualServices.hosts()]]
      const { ofHosts = this.#record.collection<readonly Candidate[]>(), ofOthers = this.#record.collection<readonly Candidate[]>() } =
        before[index] ?? {}
      return { hosts, others, ofHosts, ofOthers }
    })
    return (
      before.length === this.#egressCandidates.length &&
      this.#egressCandidates.every(
        ({ hosts, others }, index) => sameItems(hosts, before[index]?.hosts ?? []) && sameItems(others, before[index]?.others ?? []),
      )
    )
  }

  /**
   * Replaces changed virtual hosts in place, at a cost proportional to their number. Returns false, with all routes unchanged, when
   * something else changed. `remade` receives the hosts whose candidates were computed again.
   */
  #replaceInPlace(maker: HostMaker, remade: Set<string>): boolean {
    const [wanted, more] = this.#egressCandidates
    const [egress] = maker.view.egress
    if (!wanted || !egress || more || this.#common.outdated.size > 0 || this.#problems.length > 0) return false
    const made = contain<Map<string, Candidate[]> | undefined>(
      () => {
        for (const host of [...wanted.ofHosts.outdated, ...wanted.ofOthers.outdated]) remade.add(host)
        const candidates = [
          ...[...wanted.ofHosts.outdated].flatMap((host) => this.#ofHost(wanted, host, maker, egress).value),
          ...[...wanted.ofOthers.outdated].flatMap((host) => this.#ofOther(wanted, host, maker, egress).value),
        ]
        const found = new Map<string, Candidate>()
        for (const candidate of candidates) {
          const { route, host, namespace, port } = candidate
          const place = `${route.name} ${host}:${port}`
          // A host without a service does not create a route.
          if ((namespace !== '' || this.#routes.has(route.name)) && !found.has(place)) found.set(place, candidate)
        }
        const before = [...remade].flatMap((host) => this.#placesOf(host))
        return before.length === found.size && before.every((place) => found.has(place))
          ? Map.groupBy(found.values(), ({ route }) => route.name)
          : undefined
      },
      () => undefined,
    )
    if (!made) return false
    const replaced: { name: string; after: SharedRoute; hosts: SharedRoute['hosts'] }[] = []
    for (const [name, candidates] of made) {
      const before = this.#routes.get(name)
      const hosts = before && replaceHosts(before, candidates)
      if (!before || !hosts) return false
      const others = candidates
        .flatMap(({ host }) => before.claims.places.get(host) ?? [])
        .filter((place) => hosts[place]?.piece !== before.hosts[place]?.piece)
      const pieces = this.#hasTables || !before.route.catchAll ? hosts.map(({ piece }) => piece) : []
      const after = { ...before, hosts, claims: before.claims.replaceHosts(hosts), table: buildTable(name, pieces, this.#sums) }
      if (others.length > 0) replaced.push({ name, after, hosts: others.map((place) => hosts[place] as SharedRoute['hosts'][number]) })
    }
    if (replaced.length === 0) return true
    const routes = new Map(this.#routes)
    for (const { name, after, hosts } of replaced) {
      routes.set(name, after)
      this.#replaced.push({ route: after.route, hosts })
      this.#at++
    }
    this.#replaced.splice(0, this.#replaced.length - maxReplaced)
    this.#routes = routes
    this.#revision = {}
    return true
  }

  /** The routes that contain a host, with the ports under which it is in them. */
  #placesOf(host: string): string[] {
    return this.routesOf(host).flatMap((name) => {
      const route = this.#routes.get(name)
      return (route?.claims.places.get(host) ?? []).map((place) => `${name} ${host}:${route?.hosts[place]?.candidate.port}`)
    })
  }

  /** Builds all routes. */
  #buildAll(maker: HostMaker, fixed: readonly RouteName[], isListed: boolean, changed: Set<string>): void {
    const problems: Problem[] = []
    const all = this.#candidates(maker, changed, problems)
    // When the view has the same hosts as before, only the routes of the changed hosts are built.
    const touched = isListed ? new Set([...changed].flatMap((host) => [...this.routesOf(host)])) : undefined
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
    if (differs((route) => route) || problems.length + this.#problems.length > 0) {
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
  #candidates(maker: HostMaker, changed: Set<string>, problems: Problem[]): readonly Candidate[] {
    const all: Candidate[] = []
    const take = (host: string, get: () => ReturnType<EgressCandidates['ofHosts']['get']>) =>
      contain(
        () => {
          const { value, isNew } = get()
          if (isNew) changed.add(host)
          for (const candidate of value) all.push(candidate)
        },
        (reason) => {
          changed.add(host)
          problems.push(maker.problem(host, reason))
        },
      )
    for (const [index, wanted] of this.#egressCandidates.entries()) {
      const egress = maker.view.egress[index] as EgressListener
      for (const host of wanted.hosts) take(host, () => this.#ofHost(wanted, host, maker, egress))
      for (const host of wanted.others) take(host, () => this.#ofOther(wanted, host, maker, egress))
      wanted.ofHosts.keep(new Set(wanted.hosts))
      wanted.ofOthers.keep(new Set(wanted.others))
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
    if (claimed && same) return { ...claimed, hosts: routeHosts.hosts, claims: claimed.claims.replaceHosts(routeHosts.hosts), problems, extra }
    const pieces = routeHosts.hosts.map(({ piece }) => piece)
    return {
      route,
      hosts: routeHosts.hosts,
      problems,
      extra,
      table: buildTable(route.name, this.#hasTables || !route.catchAll ? pieces : [], this.#sums),
      claims: claimed?.claims.replaceHosts(routeHosts.hosts) ?? new RouteClaims(routeHosts.hosts),
      serviceCount: routeHosts.hosts.filter(({ candidate }) => candidate.namespace !== '').length,
    }
  }
}

/** A candidate whose virtual host is made once, unless domains have to be removed from it. */
function madeOnce(candidate: Candidate): Candidate {
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
    const places = (before.claims.places.get(candidate.host) ?? []).filter((place) => before.hosts[place]?.candidate.port === candidate.port)
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

/** The maximum number of replacements that are kept for groups that contain the virtual hosts before. */
const maxReplaced = 64

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

function invert(routes: ReadonlyMap<string, SharedRoute>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [name, { claims }] of routes) for (const host of claims.places.keys()) append(found, host, name)
  return found
}
