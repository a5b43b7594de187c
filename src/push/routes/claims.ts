/**
 * Which domains of which routes changed hands, so that whoever has to do with none of them need not look again. Each is a digest of 32 bits:
 * a namespace has hundreds of them, and two that are alike by chance have it look once more for nothing.
 */
import { fnv1a } from '../../model/digest.ts'

/** A domain of a route. */
export const domainOf = (route: string, domain: string): number => fnv1a(domain, fnv1a(`${route} `))
/** What stands among domains for a route as a whole, for all routes that there are, for those that a host is in, for the hosts of a route, and for the number of its services. */
export const wholeRoute = (route: string): number => fnv1a(route)
export const everyRoute = fnv1a('every route')
export const placesOf = (host: string): number => fnv1a(`routes of ${host}`)
export const hostsOf = (route: string): number => fnv1a(`hosts of ${route}`)
export const servicesOf = (route: string): number => fnv1a(`${route} has so many services`)

/** What counts of a route: who has which domain, who else claims it, where hosts stand in it, how many of them belong to services. */
interface Claims {
  readonly places: ReadonlyMap<string, unknown>
  readonly owners: ReadonlyMap<string, string>
  readonly contested: ReadonlyMap<string, unknown>
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

  add(before: ReadonlyMap<string, Claims>, after: ReadonlyMap<string, Claims>): void {
    // Whoever asked before there was any route is told to look again.
    if (before.size === 0) {
      this.#at++
      this.#last.length = 0
      return
    }
    const domains = new Set<number>()
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [one, other] = [before.get(name), after.get(name)]
      if (one?.places === other?.places) continue
      // A route that comes or goes concerns whoever has a host in it, or hides what stands in every route.
      if (!one || !other) domains.add(wholeRoute(name)).add(everyRoute)
      for (const [here, there] of [
        [one, other],
        [other, one],
      ])
        for (const host of here?.places.keys() ?? []) if (!there?.places.has(host)) domains.add(placesOf(host)).add(hostsOf(name))
      if (one?.services !== other?.services) domains.add(servicesOf(name))
      for (const place of [one, other]) for (const domain of place?.contested.keys() ?? []) domains.add(domainOf(name, domain))
      for (const [domain, owner] of one?.owners ?? []) if (other?.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
      for (const [domain, owner] of other?.owners ?? []) if (one?.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
    }
    this.#last.push({ at: ++this.#at, domains })
    if (this.#last.length > mostChanges) this.#last.shift()
  }
}

/** Changes that are remembered. */
const mostChanges = 16
