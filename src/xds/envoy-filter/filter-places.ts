/**
 * Names of filters in patches, and the positions of filters that are added by filter class or relative to a filter that a stock Envoy does
 * not have (docs/resources.md, F3).
 */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { presentFilterName } from '../../model/filter-names.ts'
import { adds, isMerge, type Patch, type PatchContext } from './patches.ts'
import { authentication, enforcedNoMore, enforcedOtherwise, isHttpPolicy, isPolicyFilter } from './policy-filters.ts'

/** The network filter that contains HTTP filters. */
export const managerName = 'envoy.filters.network.http_connection_manager'
/** The HTTP filter that must be last. */
export const routerName = 'envoy.filters.http.router'

/** Whether a filter is the one that a patch names. A patch that names none matches every filter. */
export const sameFilter = (wanted: string | undefined, name: string): boolean =>
  wanted === undefined || wanted === name || presentFilterName(wanted) === name

interface Named {
  readonly name: string
}

const behindLast = (filters: readonly Named[], among: (name: string) => boolean): number => filters.findLastIndex(({ name }) => among(name)) + 1

/**
 * Returns the index at which an added HTTP filter is inserted: after JWT validation (`AUTHN`), after all policy filters (`AUTHZ`), else
 * before the router.
 */
export function placeOfClass(filters: readonly Named[], filterClass: ConfigPatch['patch']['filterClass']): number {
  if (filterClass === 'AUTHN') return behindLast(filters, (name) => name === authentication)
  if (filterClass === 'AUTHZ') return behindLast(filters, isHttpPolicy)
  const router = filters.findIndex(({ name }) => name === routerName)
  return router < 0 ? filters.length : router
}

/**
 * Returns the replacement for an insertion relative to a filter of special builds; undefined for other filters and if the chain has the
 * filter.
 */
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

/**
 * Reports patches that remove a policy-enforcing filter, or change one by name; they are applied nonetheless, as in the reference.
 * `enforcesPolicies` says whether another filter contains such a filter.
 */
export function reportPolicyChanges<Filter extends Named>(
  before: readonly Filter[],
  after: readonly Filter[],
  patches: readonly Patch[],
  wanted: (patch: ConfigPatch) => string | undefined,
  context: PatchContext,
  enforcesPolicies: (filter: Filter) => boolean = () => false,
): void {
  for (const filter of before) {
    if (after.includes(filter)) continue
    const concerned = patches.filter((entry) => !adds(entry) && wanted(entry.patch) !== undefined && sameFilter(wanted(entry.patch), filter.name))
    const isPolicy = isPolicyFilter(filter.name)
    for (const entry of concerned) {
      const changes = isMerge(entry)
      if (!isPolicy && (changes || !enforcesPolicies(filter))) continue
      const what = `${entry.patch.applyTo} ${entry.operation} ${changes ? 'changes' : 'takes away'} ${filter.name}`
      context.report(entry.object, what, changes ? enforcedOtherwise : enforcedNoMore)
    }
  }
}
