/** Resolves VirtualServices: completes hosts, expands delegates, and indexes by gateway and host (docs/resources.md, R4, R6, R10). */
import type { HttpMatch, HttpRoute, StringMatch, TcpRoute, TlsRoute, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { append, sameItems } from '../model/lists.ts'
import { bySpecificity, completeHost, hostCovers, isExported } from '../model/match.ts'
import { byAge } from '../model/order.ts'
import type { VirtualService } from './objects.ts'

/**
 * A VirtualService with everything resolved that does not depend on the viewer: full host names of destinations, full names of gateways,
 * and expanded delegates.
 */
export interface ResolvedVirtualService {
  readonly namespace: string
  readonly name: string
  /** Full host names in lower case. */
  readonly hosts: readonly string[]
  /** `mesh`, or `<namespace>/<name>` of a gateway. */
  readonly gateways: readonly string[]
  readonly exportTo: readonly string[]
  readonly http: readonly HttpRoute[]
  readonly tls: readonly TlsRoute[]
  readonly tcp: readonly TcpRoute[]
  readonly source: VirtualService
  /** The object and the delegates it was expanded from. A resolved object keeps its identity while these are the same. */
  readonly sources: readonly VirtualService[]
  /** Whether the object refers to delegates, existing or not. */
  readonly delegates: boolean
  /** Full host names of all destinations. */
  readonly destinations: readonly string[]
  /** Namespaces in the `sourceNamespace` of its matches. */
  readonly callerNamespaces: readonly string[]
  /** Names of labels in the `sourceLabels` of its matches. */
  readonly callerLabels: readonly string[]
}

/** All VirtualServices, oldest first. */
export interface VirtualServiceIndex {
  readonly all: readonly ResolvedVirtualService[]
  /**
   * Names of delegates that a VirtualService refers to and that do not exist, are no delegates (they have hosts), or are not visible to it.
   * Used for reporting.
   */
  readonly missingDelegates: readonly string[]
  /** The VirtualServices that match on `sourceLabels`, by label name. */
  readonly byCallerLabel: ReadonlyMap<string, readonly ResolvedVirtualService[]>
}

/** The settings that VirtualServices are resolved with. */
export interface Resolution {
  readonly domain: string
  /** Whether delegates are supported. Otherwise rules that name one are left out. */
  readonly delegates: boolean
  /** The visibility of a delegate without `exportTo`. */
  readonly defaultExportTo: readonly string[]
}

/** Resolves all objects, given the oldest first. Those whose sources are the same as in `previous` keep their identity. */
export function indexVirtualServices(
  objects: readonly VirtualService[],
  { domain, delegates, defaultExportTo }: Resolution,
  previous: VirtualServiceIndex | undefined,
): VirtualServiceIndex {
  let byName: ReadonlyMap<string, VirtualService> | undefined
  const named = (name: string) => (byName ??= new Map(objects.map((object) => [`${object.namespace}/${object.name}`, object]))).get(name)
  const before = inOrder(previous?.all ?? [])
  const missingDelegates: string[] = []
  const all: ResolvedVirtualService[] = []
  for (const object of objects) {
    const old = before(object)
    if (old && !old.delegates) {
      all.push(old)
      continue
    }
    if (!object.spec.hosts?.length) continue
    const sources = [object]
    const resolved = (delegate: VirtualService) => (delegate.spec.http ?? []).map((route) => completeRoute(route, delegate.namespace, domain))
    const http = resolved(object).flatMap((route): HttpRoute[] => {
      if (!route.delegate) return [route]
      if (!delegates) return []
      const name = `${route.delegate.namespace || object.namespace}/${route.delegate.name}`
      const delegate = named(name)
      if (!delegate || delegate.spec.hosts?.length || !isExported(delegate.spec.exportTo, defaultExportTo, delegate.namespace, object.namespace)) {
        missingDelegates.push(name)
        return []
      }
      sources.push(delegate)
      return expandDelegate(route, resolved(delegate))
    })
    if (old && sameItems(old.sources, sources)) {
      all.push(old)
      continue
    }
    const complete = (host: string) => completeHost(host, object.namespace, domain).toLowerCase()
    const connections = <Route extends TlsRoute | TcpRoute>(routes: readonly Route[] | undefined) =>
      (routes ?? []).map((route) => completeTargets(route, object.namespace, domain))
    const spec = { http, tls: connections(object.spec.tls), tcp: connections(object.spec.tcp) }
    all.push({
      namespace: object.namespace,
      name: object.name,
      hosts: object.spec.hosts.map(complete),
      gateways: (object.spec.gateways?.length ? object.spec.gateways : ['mesh']).map((gateway) => qualify(gateway, object.namespace)),
      exportTo: object.spec.exportTo ?? [],
      ...spec,
      source: object,
      sources,
      delegates: object.spec.http?.some(({ delegate }) => delegate) ?? false,
      destinations: [...new Set(destinationsOf(spec))],
      callerNamespaces: [...new Set(callers(spec).flatMap(({ sourceNamespace }) => sourceNamespace || []))],
      callerLabels: [...new Set(callers(spec).flatMap(({ sourceLabels }) => Object.keys(sourceLabels ?? {})))],
    })
  }
  const byCallerLabel = new Map<string, ResolvedVirtualService[]>()
  for (const service of all) for (const label of service.callerLabels) append(byCallerLabel, label, service)
  return { all, missingDelegates, byCallerLabel }
}

/** Returns a function that finds the resolved form of objects, which it has to be asked for the oldest first. */
function inOrder(all: readonly ResolvedVirtualService[]): (object: VirtualService) => ResolvedVirtualService | undefined {
  let at = 0
  return (object) => {
    let found = all[at]
    while (found && found.source !== object && byAge(found.source, object) < 0) found = all[++at]
    if (found?.source !== object) return undefined
    at++
    return found
  }
}

function destinationsOf({ http, tls, tcp }: Pick<VirtualServiceSpec, 'http' | 'tls' | 'tcp'>): string[] {
  const l4 = [...(tls ?? []), ...(tcp ?? [])].flatMap((route) => route.route.map((entry) => entry.destination.host))
  const l7 = (http ?? []).flatMap((route) => [
    ...(route.route ?? []).map((entry) => entry.destination.host),
    ...(route.mirror ? [route.mirror.host] : []),
    ...(route.mirrors ?? []).map((entry) => entry.destination.host),
  ])
  return [...l7, ...l4]
}

/** The matches of a VirtualService, for their conditions on the caller. */
function callers({
  http,
  tls,
  tcp,
}: Pick<VirtualServiceSpec, 'http' | 'tls' | 'tcp'>): readonly Pick<HttpMatch, 'sourceNamespace' | 'sourceLabels'>[] {
  return [...(http ?? []), ...(tls ?? []), ...(tcp ?? [])].flatMap(
    (route): readonly Pick<HttpMatch, 'sourceNamespace' | 'sourceLabels'>[] => route.match ?? [],
  )
}

/**
 * Returns a gateway name as `<namespace>/<name>`. A name without a namespace gets the namespace of the object that contains it. `mesh` is
 * returned unchanged.
 */
export function qualify(gateway: string, namespace: string): string {
  if (gateway === 'mesh') return gateway
  if (!gateway.includes('/')) return `${namespace}/${gateway}`
  return gateway.startsWith('./') ? `${namespace}/${gateway.slice(2)}` : gateway
}

/** Finds VirtualServices by host. */
export interface HostLookup {
  /** All VirtualServices of the lookup, oldest first. */
  readonly all: readonly ResolvedVirtualService[]
  /** The VirtualService of a host: one with the exact host, otherwise the one with the most specific wildcard; among several the oldest. */
  find(host: string): ResolvedVirtualService | undefined
  /** Every VirtualService with the host or a wildcard that covers it, oldest first. */
  covering(host: string): readonly ResolvedVirtualService[]
  /** Hosts and wildcards of all VirtualServices without duplicates, exact hosts first. */
  hosts(): Iterable<string>
}

/**
 * Creates a lookup of the candidates (oldest first), combined with another lookup if given. The cost is proportional to the number of
 * candidates.
 */
export function hostLookup(candidates: readonly ResolvedVirtualService[], others?: HostLookup): HostLookup {
  const own = new OwnLookup(candidates)
  return others ? new JointLookup(own, others) : own
}

/** The VirtualServices of one list, by exact host and by wildcard. */
class OwnLookup implements HostLookup {
  readonly all: readonly ResolvedVirtualService[]
  readonly #exact = new Map<string, ResolvedVirtualService[]>()
  readonly #wild = new Map<string, ResolvedVirtualService[]>()
  /** Most specific first. */
  readonly #wildcards: readonly string[]

  constructor(candidates: readonly ResolvedVirtualService[]) {
    this.all = candidates
    for (const candidate of candidates)
      for (const host of new Set(candidate.hosts)) append(host.startsWith('*') ? this.#wild : this.#exact, host, candidate)
    this.#wildcards = [...this.#wild.keys()].sort(bySpecificity)
  }

  find(host: string): ResolvedVirtualService | undefined {
    const exact = this.#exact.get(host)
    if (exact) return exact[0]
    const pattern = this.#wildcards.find((wildcard) => hostCovers(wildcard, host))
    return pattern === undefined ? undefined : this.#wild.get(pattern)?.[0]
  }

  covering(host: string): readonly ResolvedVirtualService[] {
    const exact = this.#exact.get(host) ?? []
    const wild = this.#wildcards.flatMap((wildcard) => (hostCovers(wildcard, host) ? (this.#wild.get(wildcard) ?? []) : []))
    return wild.length === 0 ? exact : oldestFirst([...exact, ...wild])
  }

  hosts(): Iterable<string> {
    return [...this.#exact.keys(), ...this.#wildcards]
  }
}

/** The VirtualServices of two lookups. */
class JointLookup implements HostLookup {
  readonly #own: HostLookup
  readonly #others: HostLookup

  constructor(own: HostLookup, others: HostLookup) {
    this.#own = own
    this.#others = others
  }

  get all(): readonly ResolvedVirtualService[] {
    return oldestFirst([...this.#own.all, ...this.#others.all])
  }

  find(host: string): ResolvedVirtualService | undefined {
    const [one, other] = [this.#own.find(host), this.#others.find(host)]
    return one && other ? hostLookup(oldestFirst([one, other])).find(host) : (one ?? other)
  }

  covering(host: string): readonly ResolvedVirtualService[] {
    return oldestFirst([...this.#own.covering(host), ...this.#others.covering(host)])
  }

  hosts(): Iterable<string> {
    return [...new Set([...this.#own.hosts(), ...this.#others.hosts()])].sort(
      (one, other) => Number(one.startsWith('*')) - Number(other.startsWith('*')),
    )
  }
}

const oldestFirst = (services: readonly ResolvedVirtualService[]): readonly ResolvedVirtualService[] =>
  [...new Set(services)].sort((one, other) => byAge(one.source, other.source))

/** Completes short names of hosts and gateways in a rule with the namespace of the object that contains it. */
function completeRoute(route: HttpRoute, namespace: string, domain: string): HttpRoute {
  return {
    ...completeTargets(route, namespace, domain),
    ...(route.mirror ? { mirror: completeDestination(route.mirror, namespace, domain) } : {}),
    ...(route.mirrors
      ? { mirrors: route.mirrors.map((entry) => ({ ...entry, destination: completeDestination(entry.destination, namespace, domain) })) }
      : {}),
  }
}

function completeDestination<To extends { host: string }>(destination: To, namespace: string, domain: string): To {
  return { ...destination, host: completeHost(destination.host, namespace, domain).toLowerCase() }
}

/** Completes the matches and destinations of a rule, which HTTP, TLS and TCP rules have in common. */
function completeTargets<Route extends HttpRoute | TlsRoute | TcpRoute>(route: Route, namespace: string, domain: string): Route {
  const matches: readonly { gateways?: string[] }[] | undefined = route.match
  return {
    ...route,
    ...(route.route
      ? { route: route.route.map((entry) => ({ ...entry, destination: completeDestination(entry.destination, namespace, domain) })) }
      : {}),
    ...(matches
      ? {
          match: matches.map((match) =>
            match.gateways ? { ...match, gateways: match.gateways.map((gateway) => qualify(gateway, namespace)) } : match,
          ),
        }
      : {}),
  }
}

/** Replaces a rule by the rules of its delegate. Rules whose matches exclude the match of the root rule are left out. */
export function expandDelegate(root: HttpRoute, rules: readonly HttpRoute[]): HttpRoute[] {
  return rules.flatMap((rule): HttpRoute[] => {
    if (rule.delegate) return []
    const match = intersectMatches(root.match, rule.match)
    if (match === undefined) return []
    const { delegate: _, match: __, name, ...inherited } = root
    const joined = [name, rule.name].filter(Boolean).join('-')
    return [{ ...inherited, ...rule, ...(joined ? { name: joined } : {}), ...(match.length > 0 ? { match } : {}) }]
  })
}

function intersectMatches(roots: readonly HttpMatch[] | undefined, rules: readonly HttpMatch[] | undefined): HttpMatch[] | undefined {
  if (!roots?.length) return [...(rules ?? [])]
  if (!rules?.length) return [...roots]
  const pairs = roots.flatMap((root) => rules.flatMap((rule) => intersectMatch(root, rule) ?? []))
  return pairs.length > 0 ? pairs : undefined
}

function intersectMatch(root: HttpMatch, rule: HttpMatch): HttpMatch | undefined {
  const result: Record<string, unknown> = { ...root, ...rule }
  for (const field of ['uri', 'scheme', 'method', 'authority'] as const) {
    const both = intersectText(root[field], rule[field])
    if (both === 'conflict') return undefined
    if (both) result[field] = both
  }
  for (const field of ['headers', 'withoutHeaders', 'queryParams', 'sourceLabels'] as const) {
    const [one, other] = [root[field] ?? {}, rule[field] ?? {}] as [Record<string, unknown>, Record<string, unknown>]
    for (const key of Object.keys(one)) if (Object.hasOwn(other, key) && JSON.stringify(one[key]) !== JSON.stringify(other[key])) return undefined
    if (root[field] || rule[field]) result[field] = { ...one, ...other }
  }
  for (const field of ['port', 'sourceNamespace', 'ignoreUriCase'] as const) {
    if (root[field] !== undefined && rule[field] !== undefined && root[field] !== rule[field]) return undefined
  }
  if (root.gateways?.length && rule.gateways?.length) {
    const both = root.gateways.filter((gateway) => rule.gateways?.includes(gateway))
    if (both.length === 0) return undefined
    result.gateways = both
  } else if (root.gateways?.length) result.gateways = root.gateways
  const name = [root.name, rule.name].filter(Boolean).join('-')
  if (name) result.name = name
  return result as HttpMatch
}

function intersectText(one: StringMatch | undefined, other: StringMatch | undefined): StringMatch | 'conflict' | undefined {
  if (!one || !other) return one ?? other
  const within = (prefix: string | undefined, value: string | undefined) => prefix !== undefined && value?.startsWith(prefix)
  if (one.exact !== undefined && (one.exact === other.exact || within(other.prefix, one.exact))) return one
  if (other.exact !== undefined && within(one.prefix, other.exact)) return other
  if (within(one.prefix, other.prefix)) return other
  if (within(other.prefix, one.prefix)) return one
  return JSON.stringify(one) === JSON.stringify(other) ? one : 'conflict'
}
