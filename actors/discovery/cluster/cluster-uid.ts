/** What a cluster is known by, whatever its id and its address are: the uid of its namespace `kube-system` (docs/operation.md, J11). */
import { isMapping, mapping } from '../../../src/config/shape.ts'
import type { ApiFailure, ClusterCalls } from './cluster-api.ts'

const path = `/api/v1/namespaces?${new URLSearchParams({ fieldSelector: 'metadata.name=kube-system' })}`

/** Returns the uid; undefined where the cluster has none, or the role does not permit to read it. Rejects where it is not known yet. */
export async function clusterUid(api: Pick<ClusterCalls, 'request'>): Promise<string | undefined> {
  try {
    const body: unknown = JSON.parse(await api.request({ verb: 'list', resource: 'namespaces' }, { method: 'GET', path, accept: 'application/json' }))
    const items = isMapping(body) && Array.isArray(body.items) ? body.items : []
    const { uid } = mapping(mapping(items[0]).metadata)
    return typeof uid === 'string' && uid !== '' ? uid : undefined
  } catch (error) {
    if ((error as ApiFailure).code === 403) return undefined
    throw error
  }
}
