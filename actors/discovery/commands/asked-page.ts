/** `pilot-discovery request`: a page of the server on this machine, or of a replica in a cluster. */
import { type AdminRequest, askServer } from '../../http/admin-request.ts'
import type { LocalAnswer } from '../../http/local-call.ts'
import { type MeshClusterFlags, meansCluster, reachedCluster, tellReplica } from './asked-server.ts'

/** Asks for a page. Rejects as {@link askServer} does, or with an Error that says why the cluster cannot be asked. */
export async function askedPage(flags: MeshClusterFlags, request: AdminRequest): Promise<LocalAnswer> {
  if (!meansCluster(flags)) return askServer(request)
  const { checkPage, clusterPage } = await import('./cluster-page.ts')
  checkPage(request)
  const server = await reachedCluster(flags)
  tellReplica({ forwarded: server })
  return clusterPage(server, request)
}
