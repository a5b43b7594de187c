/**
 * Which domains of which routes changed hands, so that whoever has to do with none of them need not look again. Each is a digest of 32 bits:
 * a namespace has hundreds of them, and two that are alike by chance have it look once more for nothing.
 */
import { fnv1a } from '../../model/digest.ts'
import { append } from '../../model/lists.ts'
import type { RouteHost } from './route-hosts.ts'

/** A domain of a route. */
export const domainOf = (route: string, domain: string): number => fnv1a(domain, fnv1a(`${route} `))
/** What stands among domains for a route as a whole, for all routes that there are, for those that a host is in, for the hosts of a route, and for the number of its services. */
export const wholeRoute = (route: string): number => fnv1a(route)
export const everyRoute = fnv1a('every route')
export const placesOf = (host: string): number => fnv1a(`routes of ${host}`)
export const hostsOf = (route: string): number => fnv1a(`hosts of ${route}`)
export const servicesOf = (route: string): number => fnv1a(`${route} has so many services`)

/** Who claims what in a route. It is worked out when somebody asks first: nobody asks of routes that only one view has. */
export class RouteClaims {
  #hosts: readonly RouteHost[]
  #places: ReadonlyMap<string, readonly number[]> | undefined
  #domains: Pick<RouteClaims, 'owners' | 'contested'> | undefined

  /** `hosts` are those of the route, in the order of their claims. */
  constructor(hosts: readonly RouteHost[]) {
    this.#hosts = hosts
  }

  /** The same claims, of hosts that took the places of others. */
  of(hosts: readonly RouteHost[]): RouteClaims {
    this.#hosts = hosts
    return this
  }

  /** Places among the hosts by {@link Candidate.host}. */
  get places(): ReadonlyMap<string, readonly number[]> {
    return (this.#places ??= placesIn(this.#hosts))
  }

  /** Who has a domain. */
  get owners(): ReadonlyMap<string, string> {
    return (this.#domains ??= domainsIn(this.#hosts)).owners
  }

  /** Who claims a domain that several claim. */
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

/** What the log is told of a route: who claims what in it, and how many of its hosts belong to services. */
interface Claimed {
  readonly claims: RouteClaims
  readonly services: number
}

/** The last changes of who claims which domain. */
export class ClaimLog {
  #at = 0
  readonly #last: { readonly at: number; readonly domains: ReadonlySet<number> }[] = []

  /** Number of the present state. */
  get at(): number {
    return this.#at
  }

  /** Whether a change since a state may concern who has to do with these domains. */
  concerns(domains: Iterable<number>, at: number): boolean {
    if (at === this.#at) return false
    const [oldest] = this.#last
    if (!oldest || oldest.at > at + 1) return true
    const changes = this.#last.filter((change) => change.at > at)
    for (const domain of domains) if (changes.some((change) => change.domains.has(domain))) return true
    return false
  }

  add(before: ReadonlyMap<string, Claimed>, after: ReadonlyMap<string, Claimed>): void {
    // Whoever asked before there was any route is told to look again.
    if (before.size === 0) {
      this.#at++
      this.#last.length = 0
      return
    }
    const domains = new Set<number>()
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [one, other] = [before.get(name), after.get(name)]
      if (one?.claims === other?.claims) continue
      // A route that comes or goes concerns whoever has a host in it, or hides what stands in every route.
      if (!one || !other) domains.add(wholeRoute(name)).add(everyRoute)
      for (const [here, there] of [
        [one, other],
        [other, one],
      ])
        for (const host of here?.claims.places.keys() ?? []) if (!there?.claims.places.has(host)) domains.add(placesOf(host)).add(hostsOf(name))
      if (one?.services !== other?.services) domains.add(servicesOf(name))
      for (const place of [one, other]) for (const domain of place?.claims.contested.keys() ?? []) domains.add(domainOf(name, domain))
      for (const [domain, owner] of one?.claims.owners ?? []) if (other?.claims.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
      for (const [domain, owner] of other?.claims.owners ?? []) if (one?.claims.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
    }
    this.#last.push({ at: ++this.#at, domains })
    if (this.#last.length > mostChanges) this.#last.shift()
  }
}

/** Changes that are remembered. */
const mostChanges = 16
