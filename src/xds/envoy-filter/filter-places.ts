/** Names of filters in patches, and where filters go that are added by class or beside one that a stock Envoy does not have (docs/resources.md, F3). */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import type { Patch, PatchContext } from './patches.ts'

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

const authentication = 'envoy.filters.http.jwt_authn'
const authorization: ReadonlySet<string> = new Set([authentication, 'envoy.filters.http.rbac', 'envoy.filters.http.ext_authz'])

const behindLast = (filters: readonly Named[], among: (name: string) => boolean): number => filters.findLastIndex(({ name }) => among(name)) + 1

/** Where an HTTP filter goes that is added: behind tokens (`AUTHN`), behind all policies (`AUTHZ`), else before the router. */
export function placeOfClass(filters: readonly Named[], filterClass: ConfigPatch['patch']['filterClass']): number {
  if (filterClass === 'AUTHN') return behindLast(filters, (name) => name === authentication)
  if (filterClass === 'AUTHZ') return behindLast(filters, (name) => authorization.has(name))
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

const policyFilters: ReadonlySet<string> = new Set([...authorization, 'envoy.filters.network.rbac', 'envoy.filters.network.ext_authz'])

/** Reports patches that take a filter away that enforces policies, or replace it: they are applied, as in the reference. */
export function tellOfPolicies(
  before: readonly Named[],
  after: readonly object[],
  patches: readonly Patch[],
  wanted: (patch: ConfigPatch) => string | undefined,
  context: PatchContext,
): void {
  for (const filter of before) {
    if (!policyFilters.has(filter.name) || after.includes(filter)) continue
    for (const { patch, object, operation } of patches)
      if ((operation === 'REMOVE' || operation === 'REPLACE') && wanted(patch) !== undefined && sameFilter(wanted(patch), filter.name))
        context.report(object, `${patch.applyTo} ${operation} takes ${filter.name} away`, 'what policies enforce by this filter is enforced no more')
  }
}
