/**
 * Tracks which domains of which routes changed their owner, so that only the namespaces whose routes depend on such a domain have to check
 * again. Each domain is a 32-bit digest, because a namespace has hundreds of them. A collision only causes a needless check.
 */
import { fnv1a } from '../../model/digest.ts'
import { append } from '../../model/lists.ts'
import type { RouteHost } from './route-hosts.ts'

/** The digest of a domain of a route. */
export const domainOf = (route: string, domain: string): number => fnv1a(domain, fnv1a(`${route} `))
/**
 * Digests that stand for: a route as a whole, all routes, the routes that contain a host, the hosts of a route, and the number of services
 * in a route.
 */
export const wholeRoute = (route: string): number => fnv1a(route)
export const everyRoute = fnv1a('every route')
export const placesOf = (host: string): number => fnv1a(`routes of ${host}`)
export const hostsOf = (route: string): number => fnv1a(`hosts of ${route}`)
export const servicesOf = (route: string): number => fnv1a(`${route} has so many services`)

/** Which host claims which domain of a route. Computed on first use, because it is never needed for routes that only one view has. */
export class RouteClaims {
  #hosts: readonly RouteHost[]
  #places: ReadonlyMap<string, readonly number[]> | undefined
  #domains: Pick<RouteClaims, 'owners' | 'contested'> | undefined

  /** `hosts`: the hosts of the route, in the order of their claims. */
  constructor(hosts: readonly RouteHost[]) {
    this.#hosts = hosts
  }

  /** Keeps the claims and replaces the hosts, which must claim the same domains. */
  replaceHosts(hosts: readonly RouteHost[]): RouteClaims {
    this.#hosts = hosts
    return this
  }

  /** Indices of the route's hosts by {@link Candidate.host}. */
  get places(): ReadonlyMap<string, readonly number[]> {
    return (this.#places ??= placesIn(this.#hosts))
  }

  /** The host that owns each domain. */
  get owners(): ReadonlyMap<string, string> {
    return (this.#domains ??= domainsIn(this.#hosts)).owners
  }

  /** The hosts that claim a domain, for domains that several hosts claim. */
  get contested(): ReadonlyMap<string, ReadonlySet<string>> {
    return (this.#domains ??= domainsIn(this.#hosts)).contested
  }
}

function placesIn(hosts: readonly RouteHost[]): Map<string, number[]> {
  const places = new Map<string, number[]>()
  for (const [place, { candidate }] of hosts.entries()) append(places, candidate.host, place)
  return places
}

function domainsIn(hosts: readonly RouteHost[]): Pick<RouteClaims, 'owners' | 'contested'> {
  const owners = new Map<string, string>()
  const contested = new Map<string, Set<string>>()
  for (const { candidate, claims, piece } of hosts) {
    const { host } = candidate
    for (const domain of piece?.domains ?? []) owners.set(domain, host)
    for (const domain of claims) {
      const owner = owners.get(domain)
      if (owner === undefined || owner === host) continue
      const all = contested.get(domain)
      if (all) all.add(host)
      else contested.set(domain, new Set([owner, host]))
    }
  }
  return { owners, contested }
}

/** The state of a route that the log compares: its claims, and the number of its hosts that belong to services. */
interface Claimed {
  readonly claims: RouteClaims
  readonly serviceCount: number
}

/** The last changes of domain ownership. */
export class ClaimLog {
  #at = 0
  readonly #last: { readonly at: number; readonly domains: ReadonlySet<number> }[] = []

  /** The number of the present state. */
  get at(): number {
    return this.#at
  }

  /** Whether a change since state `at` may concern these domains. True when the log does not reach back that far. */
  concerns(domains: Iterable<number>, at: number): boolean {
    if (at === this.#at) return false
    const [oldest] = this.#last
    if (!oldest || oldest.at > at + 1) return true
    const changes = this.#last.filter((change) => change.at > at)
    for (const domain of domains) if (changes.some((change) => change.domains.has(domain))) return true
    return false
  }

  /** Records in which domains, routes and hosts the claims after a change differ from those before it. */
  add(before: ReadonlyMap<string, Claimed>, after: ReadonlyMap<string, Claimed>): void {
    // Namespaces that checked before there were any routes have to check again.
    if (before.size === 0) {
      this.#at++
      this.#last.length = 0
      return
    }
    const domains = new Set<number>()
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [one, other] = [before.get(name), after.get(name)]
      if (one?.claims === other?.claims) continue
      // A route that is added or removed concerns the namespaces with a host in it, and those that hide the hosts common to all routes.
      if (!one || !other) domains.add(wholeRoute(name)).add(everyRoute)
      for (const [here, there] of [
        [one, other],
        [other, one],
      ])
        for (const host of here?.claims.places.keys() ?? []) if (!there?.claims.places.has(host)) domains.add(placesOf(host)).add(hostsOf(name))
      if (one?.serviceCount !== other?.serviceCount) domains.add(servicesOf(name))
      for (const place of [one, other]) for (const domain of place?.claims.contested.keys() ?? []) domains.add(domainOf(name, domain))
      for (const [domain, owner] of one?.claims.owners ?? []) if (other?.claims.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
      for (const [domain, owner] of other?.claims.owners ?? []) if (one?.claims.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
    }
    this.#last.push({ at: ++this.#at, domains })
    if (this.#last.length > maxChanges) this.#last.shift()
  }
}

/** The maximum number of changes that are kept. */
const maxChanges = 16
