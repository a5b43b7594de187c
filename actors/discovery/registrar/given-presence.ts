/** Whether workloads register themselves at this replica, and how it is named as the keeper of their WorkloadEntries and to others. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'
import type { MainCluster } from '../cluster/main-cluster.ts'
import { ReplicaPresence } from './replica-presence.ts'

/** The longest part of a replica's name that comes from that of its pod or machine, in characters. */
const longestName = 200

/**
 * Returns the presence of this replica; undefined: workloads do not register themselves (`PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION`), and other
 * replicas do not ask this one (`MESHD_REPLICA_ADDRESS`).
 */
export function givenPresence({ registrationApi: api }: MainCluster, given: DiscoveryOptions, features: Features): ReplicaPresence | undefined {
  if (!features.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION && features.MESHD_REPLICA_ADDRESS === '') return undefined
  const name = (features.POD_NAME || hostname()).toLowerCase().replace(/[^a-z0-9-]+/g, '-')
  const replica = `${name.slice(0, longestName)}-${randomBytes(4).toString('hex')}`
  const { POD_NAMESPACE, MESH_DOMAIN: domain, REVISION: revision } = features
  const namespace = given.namespace || POD_NAMESPACE
  return new ReplicaPresence({ api, replica, namespace, domain, revision, pod: podOf(namespace, given, features) })
}

/** The pod of this process in that namespace of the cluster; undefined: it is in none, or is not told which. An owner elsewhere would have its Lease deleted. */
function podOf(namespace: string, { orchconfig }: DiscoveryOptions, { POD_NAME: name, POD_NAMESPACE, POD_UID: uid }: Features) {
  const isTold = name !== '' && uid !== ''
  return isTold && orchconfig === '' && namespace === POD_NAMESPACE ? { name, uid } : undefined
}
