/** Selects the EnvoyFilters that apply to a proxy (docs/resources.md, F1, F2). */
import { RE2JS } from 're2js'
import type { ProxyNode } from '../../../protocols/data.ts'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { isAttached, selectedLabelSets, targetedBy } from '../../config/shapes/policies.ts'
import { labelsMatch } from '../../model/match.ts'
import { byAge } from '../../model/order.ts'
import type { EnvoyFilter } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'

/**
 * Returns the EnvoyFilters that select a workload, ordered by priority; with equal priority those of the root namespace first, then by age.
 */
export function selectedFilters(
  { mesh, envoyFilters }: Pick<MeshSnapshot, 'mesh' | 'envoyFilters'>,
  workload: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
): EnvoyFilter[] {
  const root = mesh.rootNamespace
  const selected = envoyFilters.filter(
    ({ namespace, spec }) =>
      (namespace === workload.namespace || (namespace === root && !isAttached(spec))) &&
      selectedLabelSets(targetedBy(spec)).some((set) => labelsMatch(set, workload.labels)),
  )
  return selected.sort(
    (one, other) =>
      (one.spec.priority ?? 0) - (other.spec.priority ?? 0) || Number(other.namespace === root) - Number(one.namespace === root) || byAge(one, other),
  )
}

/** Returns those of the selected EnvoyFilters that have a patch for a proxy. */
export function filtersFor(selected: readonly EnvoyFilter[], node: ProxyNode): EnvoyFilter[] {
  return selected.filter((filter) => (filter.spec.configPatches ?? []).some((patch) => matchesProxy(patch, node)))
}

/** An EnvoyFilter without patches that a proxy refused. */
interface ReducedFilter extends EnvoyFilter {
  /** Indices of the patches that were left out; part of {@link filterId}. */
  readonly without: string
}

const reduced = new WeakMap<EnvoyFilter, Map<string, ReducedFilter>>()

/** Returns an EnvoyFilter without withdrawn patches; the same object for the same patches. Undefined if no patch is left. */
export function withoutPatches(filter: EnvoyFilter, withdrawn: ReadonlySet<ConfigPatch>): EnvoyFilter | undefined {
  const patches = filter.spec.configPatches ?? []
  const places = patches.flatMap((patch, index) => (withdrawn.has(patch) ? index : []))
  if (places.length === 0) return filter
  if (places.length === patches.length) return undefined
  const without = places.join()
  const known = reduced.get(filter) ?? new Map<string, ReducedFilter>()
  reduced.set(filter, known)
  const configPatches = patches.filter((patch) => !withdrawn.has(patch))
  const made: ReducedFilter = known.get(without) ?? { ...filter, spec: { ...filter.spec, configPatches }, without }
  known.set(without, made)
  return made
}

/** Returns the id of an EnvoyFilter in keys. A filter without some of its patches has another id. */
export const filterId = (filter: EnvoyFilter): string =>
  `${filter.namespace}/${filter.name}${'without' in filter ? ` without ${(filter as ReducedFilter).without}` : ''}`

/** Whether a patch matches the version and metadata of a proxy. */
export function matchesProxy(patch: ConfigPatch, proxy: { version: ProxyNode['version']; metadata: Readonly<Record<string, unknown>> }): boolean {
  const match = patch.match?.proxy
  if (match?.proxyVersion) {
    const text = typeof proxy.metadata.MESH_VERSION === 'string' ? proxy.metadata.MESH_VERSION : ''
    if (text === '' || !compiled(match.proxyVersion).matcher(text).find()) return false
  }
  return Object.entries(match?.metadata ?? {}).every(([key, value]) => proxy.metadata[key] === value)
}

const patterns = new Map<string, RE2JS>()
function compiled(pattern: string): RE2JS {
  const known = patterns.get(pattern)
  if (known) return known
  if (patterns.size > 1000) patterns.clear()
  const made = RE2JS.compile(pattern)
  patterns.set(pattern, made)
  return made
}
