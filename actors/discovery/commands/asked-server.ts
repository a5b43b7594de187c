/** The server that a command asks. */
import type { Replica } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import type { ForwardedServer, ServerPlace } from '../../../src/cli/admin-client.ts'
import { adminSocket } from '../../../src/cli/admin-socket.ts'
import { meansUserCluster } from '../../../src/cli/user-cluster.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { silence } from '../../../src/model/replica-silence.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import type { ClusterTarget } from './cluster-target.ts'

/** The values of the flags that name the mesh of a cluster. */
export interface MeshClusterFlags extends ClusterTarget {
  readonly cluster: boolean
}

/** The values of the flags of commands that ask a server. */
export interface ServerFlags extends MeshClusterFlags {
  readonly address: string
  readonly 'token-file': string
  readonly 'ca-file': string
  readonly json: boolean
}

/** Returns the server that the flags name. Rejects with an Error that names a flag that cannot be used, or says why a cluster cannot be asked. */
export async function serverOf(flags: ServerFlags): Promise<ServerPlace> {
  const { address, 'token-file': tokenFile, 'ca-file': caFile } = flags
  if (meansCluster(flags)) {
    const other = Object.entries({ address, 'token-file': tokenFile, 'ca-file': caFile }).find(([, value]) => value !== '')
    if (other) throw new Error(`--${other[0]} and --cluster exclude each other: the cluster says where the mesh is, and gives a token`)
    return { forwarded: await reachedCluster(flags) }
  }
  if (address === '') {
    const idle = Object.entries({ 'token-file': tokenFile, 'ca-file': caFile }).find(([, value]) => value !== '')
    if (idle) throw new Error(`--${idle[0]} needs --address`)
    return { socket: adminSocket(process.env) }
  }
  const url = URL.parse(/^https?:\/\//.test(address) ? address : `http://${address}`)
  if (!url || url.hostname === '' || url.pathname !== '/' || url.search !== '' || url.username !== '')
    throw new Error(`--address: ${JSON.stringify(address.slice(0, 100))} is not an address such as localhost:8080 or https://meshd.example:15012`)
  if (caFile !== '' && url.protocol !== 'https:') throw new Error('--ca-file needs an --address that begins with https://')
  const token = tokenFile === '' ? undefined : readText('token-file', tokenFile).trim()
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw new Error(`--token-file: ${tokenFile} has no token`)
  return { address: url.origin, token, roots: caFile === '' ? undefined : readText('ca-file', caFile) }
}

/** Whether the flags name the mesh of a cluster. Throws an Error that names a flag without effect. */
export function meansCluster(flags: MeshClusterFlags): boolean {
  if (meansUserCluster(flags)) return true
  const { revision, replica } = flags
  const idle = Object.entries({ revision, replica }).find(([, value]) => value !== '')
  if (idle) throw new Error(`--${idle[0]} needs --cluster`)
  return false
}

/** Connects to the mesh of a cluster. What that needs is loaded here alone. */
export async function reachedCluster(flags: MeshClusterFlags): Promise<ForwardedServer> {
  const { reachCluster } = await import('./cluster-target.ts')
  return reachCluster(flags)
}

/** Names the replica of a cluster whose own answer it is, on stderr. */
export function tellReplica(place: ServerPlace): void {
  if ('forwarded' in place) process.stderr.write(`answered by replica ${place.forwarded.replica}\n`)
}

function readText(flag: string, path: string): string {
  try {
    return readBoundedFileSync(path)
  } catch (error) {
    throw new Error(`--${flag}: ${(error as Error).message}`)
  }
}

/** Names the replicas whose part is missing in an answer, on stderr. */
export function warnOfSilent(replicas: readonly Pick<Replica, 'name' | 'answered' | 'reason'>[]): void {
  for (const { name, answered, reason } of replicas)
    if (!answered) process.stderr.write(`Warning: replica ${oneLine(name)} ${silence(reason)}, its proxies are missing: ${oneLine(reason)}\n`)
}
