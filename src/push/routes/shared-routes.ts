/** The route configurations of a view as strangers see them, kept from one snapshot to the next, and who claims which domain in them. */
import { contain } from '../../model/faults.ts'
import type { Problem } from '../../xds/draft.ts'
import { routeConfigurationExtra } from '../../xds/patches/apply.ts'
import { buildTable, type HostPiece, type RouteTable } from '../../xds/routes/route-table.ts'
import type { RouteName } from '../../xds/routes/sidecar-routes.ts'
import { lost } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { claimDomains, inOrder, type RouteHosts } from './route-hosts.ts'

/** A route as strangers see it. */
export interface SharedRoute extends RouteHosts {
  /** All its virtual hosts in one block. */
  readonly table: RouteTable
  /** Fields that EnvoyFilters add to the message. */
  readonly extra: Uint8Array
  /** Places among the hosts by {@link Candidate.host}. */
  readonly places: ReadonlyMap<string, readonly number[]>
  /** Who has a domain. */
  readonly owners: ReadonlyMap<string, string>
  /** Who claims a domain that several claim. */
  readonly contested: ReadonlyMap<string, ReadonlySet<string>>
  /** Virtual hosts that belong to services: without any there is no route. */
  readonly services: number
}

/** The routes of one view. */
export class SharedRoutes {
  readonly #sums: KeyedSums
  /** Another object whenever anything in the routes is another. */
  #revision: object = {}
  /** Another object whenever another host claims a domain. */
  #claims: object = {}
  #routes = new Map<string, SharedRoute>()
  #routesOf = new Map<string, string[]>()
  /** Routes that could not be made. */
  #problems: readonly Problem[] = []

  constructor(sums: KeyedSums) {
    this.#sums = sums
  }

  get routes(): ReadonlyMap<string, SharedRoute> {
    return this.#routes
  }

  get revision(): object {
    return this.#revision
  }

  get claims(): object {
    return this.#claims
  }

  /** Everything that went wrong. */
  get problems(): readonly Problem[] {
    return [...this.#problems, ...[...this.#routes.values()].flatMap(({ problems }) => problems)]
  }

  /** Names of the routes that have a host. */
  routesOf(host: string): readonly string[] {
    return this.#routesOf.get(host) ?? []
  }

  /** Others that claim a domain of a route, beside a host. */
  *rivals(route: string, domain: string, host: string): Generator<string> {
    const there = this.#routes.get(route)
    const contested = there?.contested.get(domain)
    const owner = there?.owners.get(domain)
    for (const claimant of contested ?? (owner === undefined ? [] : [owner])) if (claimant !== host) yield claimant
  }

  /** Turns to what the maker's view is now. A route that cannot be made stays as it was. */
  refresh(maker: HostMaker): void {
    const problems: Problem[] = []
    const routes = new Map<string, SharedRoute>()
    for (const [name, { route, candidates }] of candidatesOf(maker)) {
      const before = this.#routes.get(name)
      const made = contain<SharedRoute | undefined>(
        () => this.#build(route, candidates, maker, before),
        (reason) => {
          problems.push({ type: 'rds', resource: name, objects: [], reason })
          return before
        },
      )
      if (made) routes.set(name, made)
    }
    const changed = (of: (route: SharedRoute) => unknown) =>
      routes.size !== this.#routes.size || [...routes].some(([name, route]) => of(route) !== of(this.#routes.get(name) ?? ({} as SharedRoute)))
    if (changed((route) => route) || problems.length + this.#problems.length > 0) this.#revision = {}
    const reclaimed = changed(({ places }) => places)
    this.#problems = problems
    this.#routes = routes
    if (!reclaimed) return
    this.#claims = {}
    this.#routesOf = invert(routes)
  }

  #build(route: RouteName, services: readonly Candidate[], maker: HostMaker, before: SharedRoute | undefined): SharedRoute {
    const candidates = [...services, ...maker.ofRoute(route)].sort(inOrder)
    const lastGood = (name: string): HostPiece | undefined => before?.hosts.find(({ piece }) => piece?.name === name)?.piece
    const settled = claimDomains(route, candidates, lastGood)
    const patches: Problem[] = []
    const extra = maker.patched(patches, (context) => routeConfigurationExtra(route.name, context))
    const problems = [...settled.problems, ...patches]
    const claimed = before && sameClaims(before, settled) ? before : undefined
    const same = claimed?.hosts.every(({ piece }, index) => piece === settled.hosts[index]?.piece) && claimed.table.block.slab !== lost
    if (claimed && same && problems.length + claimed.problems.length === 0 && Buffer.compare(claimed.extra, extra) === 0) return claimed
    if (claimed && same) return { ...claimed, hosts: settled.hosts, problems, extra }
    const index = claimed ?? indexOf(settled)
    const pieces = settled.hosts.map(({ piece }) => piece)
    return {
      route,
      hosts: settled.hosts,
      problems,
      extra,
      table: buildTable(route.name, pieces, this.#sums),
      places: index.places,
      owners: index.owners,
      contested: index.contested,
      services: settled.hosts.filter(({ candidate }) => candidate.namespace !== '').length,
    }
  }
}

/** All virtual hosts that a view wants, by route. Of two egress listeners with routes of one name the first has it. */
export function candidatesOf(maker: HostMaker): Map<string, { route: RouteName; candidates: Candidate[] }> {
  const { view } = maker
  const routes = new Map<string, { route: RouteName; candidates: Candidate[] }>()
  const claimed = new Map<string, unknown>()
  const proxied = new Set<string>()
  for (const egress of view.egress) {
    const add = (candidate: Candidate) => {
      const { name } = candidate.route
      // This one is of all egress listeners together.
      if (name === 'http_proxy' ? proxied.has(candidate.host) : (claimed.get(name) ?? egress) !== egress) return
      if (name === 'http_proxy') proxied.add(candidate.host)
      claimed.set(name, egress)
      const there = routes.get(name)
      if (there) there.candidates.push(candidate)
      else routes.set(name, { route: candidate.route, candidates: [candidate] })
    }
    for (const state of egress.services) for (const candidate of maker.ofService(state, egress)) add(candidate)
    for (const host of egress.virtualServices.hosts())
      for (const candidate of maker.ofHost(host, egress)) if (routes.has(candidate.route.name)) add(candidate)
  }
  return routes
}

/** Whether the same hosts claim the same domains, and have them. */
function sameClaims(one: RouteHosts, other: RouteHosts): boolean {
  return (
    one.hosts.length === other.hosts.length &&
    one.hosts.every(({ piece, candidate, claims }, index) => {
      const peer = other.hosts[index] as RouteHosts['hosts'][number]
      if (candidate.host !== peer.candidate.host || candidate.namespace !== peer.candidate.namespace) return false
      return piece && piece === peer.piece ? true : sameList(claims, peer.claims) && sameList(piece?.domains ?? [], peer.piece?.domains ?? [])
    })
  )
}

const sameList = (one: readonly string[], other: readonly string[]): boolean =>
  one === other || (one.length === other.length && one.every((item, index) => item === other[index]))

function indexOf({ hosts }: RouteHosts): Pick<SharedRoute, 'places' | 'owners' | 'contested'> {
  const places = new Map<string, number[]>()
  const owners = new Map<string, string>()
  const contested = new Map<string, Set<string>>()
  for (const [place, { candidate, claims, piece }] of hosts.entries()) {
    const { host } = candidate
    const there = places.get(host)
    if (there) there.push(place)
    else places.set(host, [place])
    for (const domain of piece?.domains ?? []) owners.set(domain, host)
    for (const domain of claims) {
      const owner = owners.get(domain)
      if (owner === undefined || owner === host) continue
      const all = contested.get(domain)
      if (all) all.add(host)
      else contested.set(domain, new Set([owner, host]))
    }
  }
  return { places, owners, contested }
}

function invert(routes: ReadonlyMap<string, SharedRoute>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [name, { places }] of routes)
    for (const host of places.keys()) {
      const there = found.get(host)
      if (there) there.push(name)
      else found.set(host, [name])
    }
  return found
}
