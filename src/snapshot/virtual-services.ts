/** VirtualServices ready for use: hosts completed, delegates expanded, found by gateway and host (discovery behaviour 2.7). */
import type { HttpMatch, HttpRoute, StringMatch } from '../config/traffic-specs.ts'
import { bySpecificity, completeHost, hostCovers, isExported } from '../model/match.ts'
import { sameItems } from './destination-rules.ts'
import { byAge, type VirtualService } from './objects.ts'

/** A VirtualService with everything resolved that does not depend on who looks. */
export interface ResolvedVirtualService {
  readonly namespace: string
  readonly name: string
  /** Hosts in full, lower case. */
  readonly hosts: readonly string[]
  /** `mesh`, or `<namespace>/<name>` of a gateway. */
  readonly gateways: readonly string[]
  readonly exportTo: readonly string[]
  readonly http: readonly HttpRoute[]
  readonly source: VirtualService
  /** The object and the delegates it was expanded from: when all are the same, so is this. */
  readonly sources: readonly VirtualService[]
  /** Whether any of its matches looks at the namespace of the caller. */
  readonly matchesCallers: boolean
}

/** All VirtualServices, oldest first. */
export interface VirtualServiceIndex {
  readonly all: readonly ResolvedVirtualService[]
  /** Names of delegates that a root names but that do not exist, for reporting. */
  readonly missingDelegates: readonly string[]
  /** Whether any match looks at the namespace of the caller. */
  readonly matchesCallers: boolean
}

/** Resolves all objects. Those whose sources are unchanged since `previous` keep their identity. */
export function indexVirtualServices(
  objects: Iterable<VirtualService>,
  domain: string,
  delegates: boolean,
  previous: VirtualServiceIndex | undefined,
): VirtualServiceIndex {
  const sorted = [...objects].sort(byAge)
  const byName = new Map(sorted.map((object) => [`${object.namespace}/${object.name}`, object]))
  const before = new Map(previous?.all.map((resolved) => [resolved.source, resolved]))
  const missingDelegates: string[] = []
  const all: ResolvedVirtualService[] = []
  for (const object of sorted) {
    if (!object.spec.hosts?.length) continue
    const sources = [object]
    const http = (object.spec.http ?? []).flatMap((route): HttpRoute[] => {
      if (!route.delegate) return [route]
      if (!delegates) return []
      const name = `${route.delegate.namespace || object.namespace}/${route.delegate.name}`
      const delegate = byName.get(name)
      if (!delegate || delegate.spec.hosts?.length || !isExported(delegate.spec.exportTo, ['*'], delegate.namespace, object.namespace)) {
        missingDelegates.push(name)
        return []
      }
      sources.push(delegate)
      return expand(route, delegate)
    })
    const old = before.get(object)
    if (old && sameItems(old.sources, sources)) {
      all.push(old)
      continue
    }
    all.push({
      namespace: object.namespace,
      name: object.name,
      hosts: object.spec.hosts.map((host) => completeHost(host, object.namespace, domain).toLowerCase()),
      gateways: (object.spec.gateways?.length ? object.spec.gateways : ['mesh']).map((gateway) =>
        gateway === 'mesh' ? gateway : qualify(gateway, object.namespace),
      ),
      exportTo: object.spec.exportTo ?? [],
      http: http.map((route) => completeRoute(route, object.namespace, domain)),
      source: object,
      sources,
      matchesCallers: sources.some((from) => JSON.stringify(from.spec).includes('"sourceNamespace"')),
    })
  }
  return { all, missingDelegates, matchesCallers: all.some((resolved) => resolved.matchesCallers) }
}

/** A gateway name as `<namespace>/<name>`; names without a namespace are in the namespace of the object that says them. */
export function qualify(gateway: string, namespace: string): string {
  if (!gateway.includes('/')) return `${namespace}/${gateway}`
  return gateway.startsWith('./') ? `${namespace}/${gateway.slice(2)}` : gateway
}

/** Finds the VirtualService of a host among those given: an exact host first, then the most specific wildcard; the oldest wins. */
export function hostLookup(candidates: readonly ResolvedVirtualService[]): {
  find(host: string): ResolvedVirtualService | undefined
  hosts(): Iterable<string>
} {
  const exact = new Map<string, ResolvedVirtualService>()
  const wild = new Map<string, ResolvedVirtualService>()
  for (const candidate of candidates) {
    for (const host of candidate.hosts) {
      const hosts = host.startsWith('*') ? wild : exact
      if (!hosts.has(host)) hosts.set(host, candidate)
    }
  }
  const wildcards = [...wild.keys()].sort(bySpecificity)
  return {
    find(host) {
      const found = exact.get(host)
      if (found) return found
      const pattern = wildcards.find((wildcard) => hostCovers(wildcard, host))
      return pattern === undefined ? undefined : wild.get(pattern)
    },
    hosts: () => [...exact.keys(), ...wildcards],
  }
}

function completeRoute(route: HttpRoute, namespace: string, domain: string): HttpRoute {
  const complete = <D extends { host: string }>(destination: D): D => ({
    ...destination,
    host: completeHost(destination.host, namespace, domain).toLowerCase(),
  })
  return {
    ...route,
    ...(route.route ? { route: route.route.map((entry) => ({ ...entry, destination: complete(entry.destination) })) } : {}),
    ...(route.mirror ? { mirror: complete(route.mirror) } : {}),
    ...(route.mirrors ? { mirrors: route.mirrors.map((entry) => ({ ...entry, destination: complete(entry.destination) })) } : {}),
  }
}

/** A root rule with the rules of its delegate in its place; rules whose matches exclude each other are left out. */
function expand(root: HttpRoute, delegate: VirtualService): HttpRoute[] {
  return (delegate.spec.http ?? []).flatMap((rule): HttpRoute[] => {
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
