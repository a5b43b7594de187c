/**
 * Tracks which domains of which routes changed their owner, so that only the namespaces whose routes depend on such a domain have to check
 * again. Each domain is a 32-bit digest, because a namespace has hundreds of them. A collision only causes a needless check.
 */
import { fnv1a } from '../../model/digest.ts'
import type { SharedRoute } from './route.ts'

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

/** The state of a route that the log compares: its claims, and the number of its hosts that belong to services. */
type Claimed = Pick<SharedRoute, 'contested' | 'has' | 'names' | 'owners' | 'serviceCount'>

/** A change of domain ownership. */
interface ClaimChange {
  readonly at: number
  /** Digests of what the change may concern. */
  readonly domains: ReadonlySet<number>
  /** Digests by host, if only the places and domains of these hosts changed. */
  readonly byHost: ReadonlyMap<string, readonly number[]> | undefined
}

/** The last changes of domain ownership. */
export class ClaimLog {
  #at = 0
  readonly #last: ClaimChange[] = []

  /** The number of the present state. */
  get at(): number {
    return this.#at
  }

  /** Whether a change since state `at` may concern these digests. True when the log does not reach back that far. */
  concerns(digests: Digests, at: number): boolean {
    const changes = this.#since(at)
    if (!changes) return true
    return changes.some(({ domains }) => digests.hasAny(domains))
  }

  /**
   * The hosts whose places changed since state `at`, with the digests of what else that may concern. Undefined when something else changed,
   * or when the log does not reach back that far.
   */
  hostsSince(at: number): ReadonlyMap<string, readonly number[]> | undefined {
    const changes = this.#since(at)
    if (!changes) return undefined
    const found = new Map<string, readonly number[]>()
    for (const { byHost } of changes) {
      if (!byHost) return undefined
      for (const [host, domains] of byHost) found.set(host, [...(found.get(host) ?? []), ...domains])
    }
    return found
  }

  #since(at: number): readonly ClaimChange[] | undefined {
    if (at === this.#at) return []
    const [oldest] = this.#last
    return !oldest || oldest.at > at + 1 ? undefined : this.#last.filter((change) => change.at > at)
  }

  /** Records in which domains, routes and hosts the claims after a change differ from those before it. */
  add(before: ReadonlyMap<string, Claimed>, after: ReadonlyMap<string, Claimed>): void {
    // Namespaces that checked before there were any routes have to check again.
    if (before.size === 0) {
      this.#at++
      this.#last.length = 0
      return
    }
    this.#record(differing(before, after), undefined)
  }

  /** Records that only hosts with domains of their own came, went or changed their domains. By host the digests of its routes and domains. */
  addHosts(byHost: ReadonlyMap<string, readonly number[]>): void {
    const domains = new Set<number>()
    for (const [host, digests] of byHost) for (const digest of [placesOf(host), ...digests]) domains.add(digest)
    this.#record(domains, byHost)
  }

  #record(domains: ReadonlySet<number>, byHost: ClaimChange['byHost']): void {
    this.#last.push({ at: ++this.#at, domains, byHost })
    if (this.#last.length > maxChanges) this.#last.shift()
  }
}

/** The digests of the domains, routes and hosts in which the claims of two states differ. */
function differing(before: ReadonlyMap<string, Claimed>, after: ReadonlyMap<string, Claimed>): Set<number> {
  const domains = new Set<number>()
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(name), after.get(name)]
    if (one === other) continue
    // A route that is added or removed concerns the namespaces with a host in it, and those that hide the hosts common to all routes.
    if (!one || !other) domains.add(wholeRoute(name)).add(everyRoute)
    for (const [here, there] of [
      [one, other],
      [other, one],
    ])
      for (const host of here?.names() ?? []) if (!there?.has(host)) domains.add(placesOf(host)).add(hostsOf(name))
    if (one?.serviceCount !== other?.serviceCount) domains.add(servicesOf(name))
    for (const place of [one, other]) for (const domain of place?.contested.keys() ?? []) domains.add(domainOf(name, domain))
    for (const [domain, owner] of one?.owners ?? []) if (other?.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
    for (const [domain, owner] of other?.owners ?? []) if (one?.owners.get(domain) !== owner) domains.add(domainOf(name, domain))
  }
  return domains
}

/** A set of digests that takes four bytes for most of them. */
export class Digests {
  readonly #sorted: Int32Array
  /** Digests that were added later. */
  readonly #more = new Set<number>()

  constructor(digests: Iterable<number>) {
    this.#sorted = Int32Array.from(digests).sort()
  }

  add(digest: number): void {
    if (!this.has(digest)) this.#more.add(digest)
  }

  has(digest: number): boolean {
    if (this.#more.has(digest)) return true
    const sorted = this.#sorted
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((sorted[middle] as number) < digest) from = middle + 1
      else to = middle
    }
    return sorted[from] === digest
  }

  /** Whether one of these digests is in the set. */
  hasAny(digests: ReadonlySet<number>): boolean {
    if (digests.size < this.#sorted.length + this.#more.size) return [...digests].some((digest) => this.has(digest))
    return this.#sorted.some((digest) => digests.has(digest)) || [...this.#more].some((digest) => digests.has(digest))
  }
}

/** The maximum number of changes that are kept. */
const maxChanges = 16
