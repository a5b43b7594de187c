/** Rows of debug pages about the proxies of this replica, which other replicas ask for too. */
import { clusterType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import type { ProxyDigests } from '../distribution/distribution.ts'
import type { RefusedRow } from './mesh-answers.ts'
import type { PageSources } from './page-sources.ts'

/** The generation of an object that a proxy has acknowledged, by type; empty: none, or the proxy refuses it and has the type without it. */
export interface DistributionRow {
  readonly proxy: string
  readonly namespace: string
  readonly cluster_acked: string
  readonly listener_acked: string
  readonly route_acked: string
}

/** The generations of an object that the proxies of this replica have acknowledged. */
export async function distributionOf(sources: PageSources, resource: string): Promise<DistributionRow[]> {
  const [proxies, refused] = await Promise.all([sources.distribution<ProxyDigests[]>('digests'), sources.list<RefusedRow>('refusals')])
  const withdrawn = new Set(
    refused.flatMap(({ connectionId, typeUrl, isReplaced, fault }) =>
      isReplaced && fault.objects.includes(resource) ? `${connectionId} ${typeUrl}` : [],
    ),
  )
  const rows = proxies.map(({ connection, digests }) =>
    [clusterType, listenerType, routeType].map((typeUrl) => (withdrawn.has(`${connection} ${typeUrl}`) ? '' : (digests[typeUrl] ?? ''))),
  )
  const digests = [...new Set(rows.flat())].filter((digest) => digest !== '')
  const found = await sources.queue<(number | string | undefined)[]>('generations', resource, digests)
  const generations = new Map(digests.map((digest, index) => [digest, found[index]]))
  return proxies.map(({ nodeId, namespace }, index) => {
    const [cluster_acked = '', listener_acked = '', route_acked = ''] = (rows[index] ?? []).map((digest) => String(generations.get(digest) ?? ''))
    return { proxy: nodeId.split('~')[2] ?? '', namespace, cluster_acked, listener_acked, route_acked }
  })
}

/** The service instances of a proxy. */
export interface InstancesRow {
  readonly connection: string
  readonly namespace: string
  readonly instances: unknown
}

/** The service instances of the proxies of this replica. */
export const instancesOf = (sources: PageSources): Promise<InstancesRow[]> => sources.list<InstancesRow>('instances')
