/** Which hosts differ for a namespace from the shared routes. */
import { contain } from '../../model/faults.ts'
import { append } from '../../model/lists.ts'
import type { Problem } from '../../xds/draft.ts'
import { domainOf, everyRoute, hostsOf, placesOf, servicesOf, wholeRoute } from './claim-log.ts'
import type { Candidate, HostMaker } from './host-pieces.ts'
import { servicesIn } from './route-hosts.ts'
import type { SharedRoutes } from './shared-routes.ts'

/** Whether a host stands for virtual hosts that are common to all routes. */
export const isCommon = (host: string): boolean => host === '*' || host.startsWith('+')

/**
 * Finds the hosts that differ for a namespace, including all hosts whose domains may change owner because of them, and the virtual hosts
 * that the namespace has in their place.
 */
export class Differing {
  readonly #shared: SharedRoutes
  readonly #maker: HostMaker
  readonly #candidatesOf: (host: string) => readonly Candidate[]
  readonly #problems: Problem[]
  readonly hosts = new Set<string>()
  readonly candidates = new Map<string, Candidate[]>()
  readonly domains = new Set<number>()
  #queue: string[] = []

  constructor(
    shared: SharedRoutes,
    maker: HostMaker,
    hosts: Iterable<string>,
    candidatesOf: (host: string) => readonly Candidate[],
    problems: Problem[],
  ) {
    this.#shared = shared
    this.#maker = maker
    this.#candidatesOf = candidatesOf
    this.#problems = problems
    this.#queue = [...hosts]
    const [egress] = maker.view.egress
    // Where the shared routes have no route 80, the first service that the namespace has on it brings in every host without a service.
    if (egress && !shared.routes.has('80')) this.#queue.push(...egress.virtualServices.hosts())
    do {
      for (let host = this.#queue.pop(); host !== undefined; host = this.#queue.pop()) if (!this.hosts.has(host)) this.#add(host)
      this.#addVanished()
    } while (this.#queue.length > 0)
  }

  /** Whether a route has a virtual host of a service, or needs none. */
  exists(name: string): boolean {
    const shared = this.#shared.routes.get(name)
    const hidden = shared ? [...this.hosts].reduce((sum, host) => sum + servicesIn(shared.of(host)), 0) : 0
    const candidates = this.candidates.get(name) ?? []
    if ((shared?.id ?? candidates[0]?.route)?.isFixed) return true
    const own = candidates.filter(({ namespace }) => namespace !== '').length
    // In that case the existence of the route depends on the services of the shared route.
    if (own === 0) this.domains.add(servicesOf(name))
    return (shared?.serviceCount ?? 0) - hidden + own > 0
  }

  /** Hides all hosts of a shared route that does not exist for the namespace. */
  #addVanished(): void {
    for (const name of new Set([...this.hosts].flatMap((host) => this.#shared.routesOf(host)))) {
      if (this.exists(name)) continue
      this.domains.add(hostsOf(name))
      for (const host of this.#shared.routes.get(name)?.names() ?? []) if (!this.hosts.has(host)) this.#queue.push(host)
    }
  }

  #add(host: string): void {
    const shared = this.#shared
    this.hosts.add(host)
    this.domains.add(isCommon(host) ? everyRoute : placesOf(host))
    const before = shared.routesOf(host).flatMap((name) => shared.routes.get(name)?.of(host) ?? [])
    for (const { candidate, claims } of before) this.#claim(candidate.route.name, claims, host)
    const own = contain<readonly Candidate[]>(
      () => this.#candidatesOf(host),
      (reason) => {
        this.#problems.push(this.#maker.problem(host, reason))
        return []
      },
    )
    // Virtual hosts that belong to no service and no VirtualService are the same for all callers.
    const common = isCommon(host) ? before.map(({ candidate }) => candidate) : []
    for (const candidate of [...own, ...common]) {
      const { name } = candidate.route
      append(this.candidates, name, candidate)
      this.#claim(name, candidate.make().piece?.domains ?? [], host)
    }
  }

  #claim(route: string, domains: readonly string[], host: string): void {
    this.domains.add(wholeRoute(route))
    for (const domain of domains) this.domains.add(domainOf(route, domain))
    this.#queue.push(...(this.#shared.routes.get(route)?.otherClaimants(domains, host) ?? []))
  }
}
