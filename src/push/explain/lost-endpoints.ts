/** Why a caller does not get endpoints that a destination has (docs/resources.md, E4, E7, E8), in the words that its load assignments are told with. */
import type { Routing } from '../../../protocols/messages/explain.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { View } from '../../snapshot/view.ts'
import { clusterParts } from '../../xds/names.ts'
import type { Traits } from '../../xds/traits.ts'
import { usableEndpoints } from '../groups/usable-endpoints.ts'
import { withReasons } from './empty-clusters.ts'

/** The maximum number of reasons of a cluster, and of clusters that are looked at. */
const mostReasons = 3
const mostClusters = 10

/** The reasons of clusters, by cluster, with the namespace of their service. */
export type LostEndpoints = Readonly<Record<string, { readonly namespace: string; readonly reasons: readonly string[] }>>

/** Returns why callers with a view and traits do not get endpoints of clusters. */
export function lostEndpoints(view: View, traits: Traits, snapshot: MeshSnapshot, clusters: readonly string[]): LostEndpoints {
  return Object.fromEntries(
    clusters.slice(0, mostClusters).flatMap((cluster) => {
      const { host, subset } = clusterParts(cluster)
      const state = view.service(host)
      if (!state) return []
      const { service } = state
      const subsets = view.ruleFor(service)?.subsets.filter(({ name }) => name === subset) ?? []
      const { told } = usableEndpoints('eds', view.namespace, state, subsets, traits, snapshot)
      const reasons = [...new Set(told.flatMap((outcome) => ('problem' in outcome ? [outcome.problem.reason] : [])))].slice(0, mostReasons)
      return reasons.length === 0 ? [] : [[cluster, { namespace: service.namespace, reasons }] as const]
    }),
  )
}

/** A routing with these reasons, as far as the caller sees the namespaces of the services. */
export function withLostEndpoints(routing: Routing, found: LostEndpoints, sees: (namespace: string) => boolean): Routing {
  const seen = Object.entries(found).filter(([, { namespace }]) => sees(namespace))
  return withReasons(routing, new Map(seen.map(([cluster, { reasons }]) => [cluster, reasons.join('; ')])))
}
