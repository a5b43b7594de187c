/** Names of filters in patches, and where filters go that are added by class or beside one that a stock Envoy does not have (docs/resources.md, F3). */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { adds, isMerge, type Patch, type PatchContext } from './patches.ts'
import { authentication, enforcedNoMore, enforcedOtherwise, isHttpPolicy, isPolicyFilter } from './policy-filters.ts'

/** The network filter that has HTTP filters. */
export const managerName = 'envoy.filters.network.http_connection_manager'
/** The HTTP filter that must be the last. */
export const routerName = 'envoy.filters.http.router'

/** Old names of filters that users still write. */
const canonicalNames: Readonly<Record<string, string>> = {
  'envoy.http_connection_manager': managerName,
  'envoy.tcp_proxy': 'envoy.filters.network.tcp_proxy',
  'envoy.mongo_proxy': 'envoy.filters.network.mongo_proxy',
  'envoy.redis_proxy': 'envoy.filters.network.redis_proxy',
  'envoy.ratelimit': 'envoy.filters.network.ratelimit',
  'envoy.router': routerName,
  'envoy.buffer': 'envoy.filters.http.buffer',
  'envoy.cors': 'envoy.filters.http.cors',
  'envoy.csrf': 'envoy.filters.http.csrf',
  'envoy.fault': 'envoy.filters.http.fault',
  'envoy.grpc_web': 'envoy.filters.http.grpc_web',
  'envoy.grpc_json_transcoder': 'envoy.filters.http.grpc_json_transcoder',
  'envoy.health_check': 'envoy.filters.http.health_check',
  'envoy.ip_tagging': 'envoy.filters.http.ip_tagging',
  'envoy.lua': 'envoy.filters.http.lua',
  'envoy.ext_authz': 'envoy.filters.http.ext_authz',
  'envoy.rate_limit': 'envoy.filters.http.ratelimit',
  'envoy.listener.http_inspector': 'envoy.filters.listener.http_inspector',
  'envoy.listener.original_dst': 'envoy.filters.listener.original_dst',
  'envoy.listener.original_src': 'envoy.filters.listener.original_src',
  'envoy.listener.proxy_protocol': 'envoy.filters.listener.proxy_protocol',
  'envoy.listener.tls_inspector': 'envoy.filters.listener.tls_inspector',
}

/** Whether a filter is the one that a patch names; each is for a patch that names none. */
export const sameFilter = (wanted: string | undefined, name: string): boolean =>
  wanted === undefined || wanted === name || (Object.hasOwn(canonicalNames, wanted) && canonicalNames[wanted] === name)

interface Named {
  readonly name: string
}

const behindLast = (filters: readonly Named[], among: (name: string) => boolean): number => filters.findLastIndex(({ name }) => among(name)) + 1

/** Where an HTTP filter goes that is added: behind tokens (`AUTHN`), behind all policies (`AUTHZ`), else before the router. */
export function placeOfClass(filters: readonly Named[], filterClass: ConfigPatch['patch']['filterClass']): number {
  if (filterClass === 'AUTHN') return behindLast(filters, (name) => name === authentication)
  if (filterClass === 'AUTHZ') return behindLast(filters, isHttpPolicy)
  const router = filters.findIndex(({ name }) => name === routerName)
  return router < 0 ? filters.length : router
}

/** What an insertion beside a filter of special builds comes to; undefined for all other filters, and where the chain has it. */
export function anchorOf(
  wanted: string | undefined,
  filters: readonly Named[],
): { operation: 'ADD' | 'INSERT_FIRST' | 'INSERT_AFTER'; name?: string } | undefined {
  if (wanted === undefined || filters.some(({ name }) => name === wanted)) return undefined
  const isLast = wanted === 'istio.stats' || wanted === 'istio.alpn'
  if (isLast) return { operation: 'ADD' }
  if (wanted === 'istio.metadata_exchange' || wanted === 'istio.peer_metadata') return { operation: 'INSERT_FIRST' }
  if (wanted !== 'istio_authn') return undefined
  return filters.some(({ name }) => name === authentication) ? { operation: 'INSERT_AFTER', name: authentication } : { operation: 'INSERT_FIRST' }
}

/** Reports patches that take a filter away that enforces policies, or change it by its name: they are applied, as in the reference. `guards` says of other filters whether they have such a one. */
export function tellOfPolicies<Filter extends Named>(
  before: readonly Filter[],
  after: readonly Filter[],
  patches: readonly Patch[],
  wanted: (patch: ConfigPatch) => string | undefined,
  context: PatchContext,
  guards: (filter: Filter) => boolean = () => false,
): void {
  for (const filter of before) {
    if (after.includes(filter)) continue
    const concerned = patches.filter((entry) => !adds(entry) && wanted(entry.patch) !== undefined && sameFilter(wanted(entry.patch), filter.name))
    const isPolicy = isPolicyFilter(filter.name)
    for (const entry of concerned) {
      const changes = isMerge(entry)
      if (!isPolicy && (changes || !guards(filter))) continue
      const what = `${entry.patch.applyTo} ${entry.operation} ${changes ? 'changes' : 'takes away'} ${filter.name}`
      context.report(entry.object, what, changes ? enforcedOtherwise : enforcedNoMore)
    }
  }
}
