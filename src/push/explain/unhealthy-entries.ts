/** Which WorkloadEntries of a destination take no traffic, because their status does not say that they are healthy (docs/resources.md, S3). */
import type { ConfigObject, Endpoint } from '../../../protocols/data.ts'
import type { Routing } from '../../../protocols/messages/explain.ts'
import { configKey } from '../../config/kinds.ts'
import { count } from '../../model/counts.ts'
import type { View } from '../../snapshot/view.ts'
import { clusterParts } from '../../xds/names.ts'
import { withReasons } from './empty-clusters.ts'

/** The maximum number of entries that are named. */
const mostNamed = 3

/** An entry that takes no traffic, and what its status says. */
interface UnhealthyEntry {
  readonly namespace: string
  readonly name: string
  readonly condition: string
}

/** The entries of clusters, as far as they are told, by cluster, with their number. */
export type UnhealthyEntries = Readonly<Record<string, { readonly all: number; readonly entries: readonly UnhealthyEntry[] }>>

/** Returns the unhealthy entries of the services of clusters, as a view has them. `objectAt` returns the object with a key. */
export function unhealthyEntries(
  { service }: Pick<View, 'service'>,
  clusters: readonly string[],
  objectAt: (key: string) => ConfigObject | undefined,
): UnhealthyEntries {
  return Object.fromEntries(
    clusters.flatMap((cluster) => {
      const found = (service(clusterParts(cluster).host)?.endpoints ?? []).filter(isUnhealthyEntry)
      const entries = found.slice(0, mostNamed).map(({ namespace, workload: name }) => {
        return { namespace, name, condition: conditionOf(objectAt(configKey({ kind: 'WorkloadEntry', namespace, name }))) }
      })
      return found.length > 0 ? [[cluster, { all: found.length, entries }] as const] : []
    }),
  )
}

/** A pod that is not ready runs on a node; an entry does not. */
const isUnhealthyEntry = ({ workload, node, readiness }: Endpoint): boolean => workload !== '' && node === undefined && readiness === 'unready'

function conditionOf({ healthy, healthMessage = '' }: Pick<ConfigObject, 'healthy' | 'healthMessage'> = {}): string {
  if (healthy === undefined) return 'its status has no condition Healthy'
  return `its condition Healthy is not True${healthMessage === '' ? '' : `: ${healthMessage}`}`
}

/** A routing with the unhealthy entries of the clusters that have no endpoint. Entries of namespaces that the caller does not see are counted alone. */
export function withUnhealthyEntries(routing: Routing, found: UnhealthyEntries, sees: (namespace: string) => boolean): Routing {
  return withReasons(routing, new Map(Object.entries(found).map(([cluster, entries]) => [cluster, toldOf(entries, sees)])))
}

function toldOf({ all, entries }: UnhealthyEntries[string], sees: (namespace: string) => boolean): string {
  const named = entries
    .filter(({ namespace }) => sees(namespace))
    .map(({ namespace, name, condition }) => `WorkloadEntry ${namespace}/${name} is not healthy (${condition})`)
  const more = all - named.length
  return [...named, ...(more > 0 ? [`${count(more, 'WorkloadEntry', 'WorkloadEntries')}${named.length > 0 ? ' more' : ''} not healthy`] : [])].join(
    ', ',
  )
}
