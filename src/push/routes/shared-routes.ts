/** The route configurations of a view as strangers see them, kept from one snapshot to the next, and who claims which domain in them. */

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
import { claimDomains, inOrder, type RouteHosts } from './route-hosts.ts'

/** A route as strangers see it. */
export interface SharedRoute extends RouteHosts {
  /** All its virtual hosts in one block; none where they are resources of their own. */
  readonly table: RouteTable
  /** Fields that EnvoyFilters add to the message. */
  readonly extra: Uint8Array
  /** The same object until somebody claims something else. */
  readonly claims: RouteClaims
  /** Virtual hosts that belong to services: without any there is no route. */
  readonly services: number
}

/** What hosts want in the routes of an egress listener: those of services, and others that VirtualServices have. */
interface Wanted {
  readonly hosts: readonly string[]
  readonly others: readonly string[]
  readonly ofHosts: Collection<readonly Candidate[]>
  readonly ofOthers: Collection<readonly Candidate[]>
}

/** Virtual hosts of a route that took the places of others. */
export type Replaced = Pick<SharedRoute, 'route' | 'hosts'>

/** The routes of one view. */
export class SharedRoutes {
  readonly #sums: KeyedSums
  readonly #hasTables: boolean
  readonly #record: Pick<Dependencies<never>, 'collection'>
  /** By egress listener what each host wants, and what came of making it, for the view and the filters that it was made with. */
  #wanted: readonly Wanted[] = []
  /** The same for what a route has besides hosts. */
  #common: Collection<readonly Candidate[]>
  #given: readonly unknown[] = []
  /** Another object whenever anything in the routes is another. */
  #revision: object = {}
  #routes = new Map<string, SharedRoute>()
  /** Names of the routes by host, once somebody has asked for them. */
  #routesOf: ReadonlyMap<string, readonly string[]> | undefined
  readonly #changes = new ClaimLog()
  /** Virtual hosts that took the places of others, the last of them; `#at` counts them all. */
  #replaced: Replaced[] = []
  #at = 0
  /** Routes that could not be made. */
  #problems: readonly Problem[] = []

  /** `hasTables`: routes that take unknown hosts hold their virtual hosts themselves; otherwise these are resources of their own. */
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

  /** The table of a route, made again where its bytes were dropped: nobody has used it for a while. */
  tableOf(name: string): RouteTable | undefined {
    const route = this.#routes.get(name)
    if (!route || route.table.block.slab !== lost) return route?.table
    const table = buildTable(name, route.table.pieces, this.#sums)
    this.#routes.set(name, { ...route, table })
    return table
  }

  /** Changes of who claims what. */
  get claims(): Pick<ClaimLog, 'at' | 'concerns'> {
    return this.#changes
  }

  /** Number of the present state. */
  get at(): number {
    return this.#at
  }

  /** Virtual hosts that took the places of others since a state, in their order; undefined when more is another, or that is too long ago. */
  replacedSince(at: number): readonly Replaced[] | undefined {
    const count = this.#at - at
    return count > this.#replaced.length ? undefined : this.#replaced.slice(this.#replaced.length - count)
  }

  /** Everything that went wrong. */
  get problems(): readonly Problem[] {
    return [...this.#problems, ...[...this.#routes.values()].flatMap(({ problems }) => problems)]
  }

  /** Names of the routes that have a host. */
  routesOf(host: string): readonly string[] {
    this.#routesOf ??= invert(this.#routes)
    return this.#routesOf.get(host) ?? []
  }

  /** Others that claim one of these domains of a route, beside a host. */
  rivals(route: string, domains: readonly string[], host: string): string[] {
    const there = this.#routes.get(route)
    if (!there) return []
    return domains.flatMap((domain) => {
      const contested = there.claims.contested.get(domain)
      if (contested) return [...contested].filter((claimant) => claimant !== host)
      const owner = there.claims.owners.get(domain)
      return owner === undefined || owner === host ? [] : owner
    })
  }

  /** Turns to what the maker's view is now. A route that cannot be made stays as it was. */
  refresh(maker: HostMaker): void {
    const { fixedRoutes } = maker
    const given = [maker.view, ...maker.filters, ...fixedRoutes]
    const isSame = sameItems(given, this.#given)
    if (!isSame) {
      this.#wanted = []
      this.#common = this.#record.collection()
    }
    this.#given = given
    const isListed = this.#list(maker.view)
    const remade = new Set<string>()
    if (!isSame || !isListed || !this.#replace(maker, remade)) this.#settle(maker, fixedRoutes, isListed, remade)
    this.#common.read()
    for (const { ofHosts, ofOthers } of this.#wanted) {
      ofHosts.read()
      ofOthers.read()
    }
  }

  /** Lists the hosts of the view. Returns whether they are those that it had. */
  #list(view: View): boolean {
    const before = this.#wanted
    this.#wanted = view.egress.map((egress, index): Wanted => {
      const [hosts, others] = [egress.hosts, [...egress.virtualServices.hosts()]]
      const { ofHosts = this.#record.collection<readonly Candidate[]>(), ofOthers = this.#record.collection<readonly Candidate[]>() } =
        before[index] ?? {}
      return { hosts, others, ofHosts, ofOthers }
    })
    return (
      before.length === this.#wanted.length &&
      this.#wanted.every(({ hosts, others }, index) => sameItems(hosts, before[index]?.hosts ?? []) && sameItems(others, before[index]?.others ?? []))
    )
  }

  /**
   * Puts virtual hosts that are others now in the places of those before, at the cost of these. Returns false, having changed no route, when more is another.
   * `remade` takes the hosts for which it was worked out anew what they want.
   */
  #replace(maker: HostMaker, remade: Set<string>): boolean {
    const [wanted, more] = this.#wanted
    const [egress] = maker.view.egress
    if (!wanted || !egress || more || this.#common.outdated.size > 0 || this.problems.length > 0) return false
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
          // A host without a service makes no route.
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
      const after = { ...before, hosts, claims: before.claims.of(hosts), table: buildTable(name, pieces, this.#sums) }
      if (others.length > 0) replaced.push({ name, after, hosts: others.map((place) => hosts[place] as SharedRoute['hosts'][number]) })
    }
    if (replaced.length === 0) return true
    const routes = new Map(this.#routes)
    for (const { name, after, hosts } of replaced) {
      routes.set(name, after)
      this.#replaced.push({ route: after.route, hosts })
      this.#at++
    }
    this.#replaced.splice(0, this.#replaced.length - mostReplaced)
    this.#routes = routes
    this.#revision = {}
    return true
  }

  /** Routes and ports with which a host stands in them. */
  #placesOf(host: string): string[] {
    return this.routesOf(host).flatMap((name) => {
      const route = this.#routes.get(name)
      return (route?.claims.places.get(host) ?? []).map((place) => `${name} ${host}:${route?.hosts[place]?.candidate.port}`)
    })
  }

  /** Settles all routes. */
  #settle(maker: HostMaker, fixed: readonly RouteName[], isListed: boolean, changed: Set<string>): void {
    const problems: Problem[] = []
    const all = this.#candidates(maker, changed, problems)
    // Without other hosts than before, only the routes of those that were made anew are looked at.
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
    if (reclaimed) this.#changes.add(this.#routes, routes)
    this.#problems = problems
    this.#routes = routes
    if (reclaimed) this.#routesOf = undefined
  }

  /** What all hosts want, in the order of egress listeners; `changed` takes those that are made anew. */
  #candidates(maker: HostMaker, changed: Set<string>, problems: Problem[]): readonly Candidate[] {
    const all: Candidate[] = []
    const take = (host: string, get: () => ReturnType<Wanted['ofHosts']['get']>) =>
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
    for (const [index, wanted] of this.#wanted.entries()) {
      const egress = maker.view.egress[index] as EgressListener
      for (const host of wanted.hosts) take(host, () => this.#ofHost(wanted, host, maker, egress))
      for (const host of wanted.others) take(host, () => this.#ofOther(wanted, host, maker, egress))
      wanted.ofHosts.keep(new Set(wanted.hosts))
      wanted.ofOthers.keep(new Set(wanted.others))
    }
    return all
  }

  #ofHost({ ofHosts }: Wanted, host: string, maker: HostMaker, egress: EgressListener) {
    return ofHosts.get(host, () => {
      const state = maker.view.service(host)
      return (state ? maker.ofService(state, egress) : []).map(madeOnce)
    })
  }

  #ofOther({ ofOthers }: Wanted, host: string, maker: HostMaker, egress: EgressListener) {
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
    const replaced = hosts && { route, hosts, problems: [] }
    const lastGood = (name: string): HostPiece | undefined => before?.hosts.find(({ piece }) => piece?.name === name)?.piece
    const settled = replaced ?? claimDomains(route, [...services, ...common].sort(inOrder), lastGood)
    const problems = [...settled.problems, ...patches]
    const claimed = before && (replaced || sameClaims(before, settled)) ? before : undefined
    const same = claimed?.hosts.every(({ piece }, index) => piece === settled.hosts[index]?.piece)
    if (claimed && same && problems.length + claimed.problems.length === 0 && Buffer.compare(claimed.extra, extra) === 0) return claimed
    if (claimed && same) return { ...claimed, hosts: settled.hosts, claims: claimed.claims.of(settled.hosts), problems, extra }
    const pieces = settled.hosts.map(({ piece }) => piece)
    return {
      route,
      hosts: settled.hosts,
      problems,
      extra,
      table: buildTable(route.name, this.#hasTables || !route.catchAll ? pieces : [], this.#sums),
      claims: claimed?.claims.of(settled.hosts) ?? new RouteClaims(settled.hosts),
      services: settled.hosts.filter(({ candidate }) => candidate.namespace !== '').length,
    }
  }
}

/** A candidate whose virtual host is made once, but for domains that others have. */
function madeOnce(candidate: Candidate): Candidate {
  const made = candidate.make()
  return { ...candidate, make: (without) => (without && without.size > 0 ? candidate.make(without) : made) }
}

/** The virtual hosts of a route with some in the places of those before, if they claim just what these claimed and nothing went wrong; undefined when the route is to be settled as a whole. */
function replaceHosts(before: SharedRoute, candidates: readonly Candidate[]): RouteHosts['hosts'] | undefined {
  if (before.problems.length > 0) return undefined
  const hosts = [...before.hosts]
  for (const candidate of candidates) {
    const places = (before.claims.places.get(candidate.host) ?? []).filter((place) => before.hosts[place]?.candidate.port === candidate.port)
    const [place] = places
    const old = place === undefined ? undefined : hosts[place]
    if (!old || place === undefined || places.length !== 1 || old.candidate.namespace !== candidate.namespace) return undefined
    const made = candidate.make()
    if (made.failed || made.problems.length > 0 || !made.piece || !old.piece) return undefined
    if (!sameItems(made.piece.domains, old.claims) || !sameItems(old.piece.domains, old.claims)) return undefined
    hosts[place] = { candidate, claims: old.claims, piece: made.piece }
  }
  return hosts
}

/** How many replaced virtual hosts are remembered for who has those before. */
const mostReplaced = 64

/** Virtual hosts by route. Where egress listeners have routes of one name, a port of a host is that of the first that has it. */
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
  // A host without a service makes no route.
  for (const [name, { route, candidates }] of routes) if (!route.isFixed && candidates.every(({ namespace }) => namespace === '')) routes.delete(name)
  return routes
}

/** Whether the same hosts claim the same domains, and have them. */
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
