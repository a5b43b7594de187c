/** Applies CLUSTER patches to clusters (`envoy.config.cluster.v3.Cluster`; docs/resources.md, F4). */
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import type { Draft, Patcher } from '../draft.ts'
import { hostOf } from '../names.ts'
import { clusterType } from '../type-urls.ts'
import { type Lists, mergeInto } from './merge.ts'
import { added, adds, checked, objectsOf, type PatchContext, type PatchedList, patchesOf, patchList, turns } from './patches.ts'
import { mergeSocket } from './transport-sockets.ts'

/** Returns a patcher with the merges and removals of CLUSTER patches; undefined if there are none. */
export function clusterPatcher(context: PatchContext): Patcher<Cluster> | undefined {
  const patches = patchesOf(context, 'CLUSTER').filter((entry) => !adds(entry) && entry.operation !== 'REPLACE')
  if (patches.length === 0) return undefined
  return {
    objects: objectsOf(patches),
    apply: (cluster) => checked(ClusterSchema, cluster, patchList(clusters, [cluster], patches, context)[0]),
  }
}

/**
 * Returns the hosts whose outbound clusters CLUSTER patches may change, sorted. Undefined: those of any host, because a patch names neither a
 * service nor a cluster.
 */
export function hostsOfPatches(context: Pick<PatchContext, 'context' | 'traits'>): readonly string[] | undefined {
  const hosts = new Set<string>()
  for (const entry of patchesOf(context, 'CLUSTER')) {
    if (adds(entry)) continue
    const { name, service } = entry.patch.match?.cluster ?? {}
    if (name) hosts.add(hostOf(clusterType, name))
    else if (service) hosts.add(service)
    else return undefined
  }
  // Clusters of no service have no host.
  hosts.delete('')
  return [...hosts].sort()
}

/** Returns the clusters that CLUSTER patches add. */
export function addedClusters(context: PatchContext): Draft<Cluster>[] {
  return added(ClusterSchema, patchesOf(context, 'CLUSTER'), context)
}

const clusters: PatchedList<typeof ClusterSchema> = {
  schema: ClusterSchema,
  matches: matchesCluster,
  names: () => false,
  byNameOnly: false,
  turns: turns.changesFirst,
  merge: mergeCluster,
}

/**
 * Merges a patch into a cluster. If the cluster has socket matches, which have precedence over its transport socket, a transport socket is
 * merged into the match whose socket has the same name.
 */
function mergeCluster(cluster: Cluster, value: Cluster, lists: Lists): void {
  const { transportSocket: socket } = value
  if (socket) {
    const own = cluster.transportSocketMatches.flatMap(({ transportSocket }) => transportSocket ?? [])
    const target = own.length > 0 ? own.find(({ name }) => name === socket.name) : cluster.transportSocket
    if (target) mergeSocket(target, socket as TransportSocket)
    else if (own.length === 0) cluster.transportSocket = socket
    delete value.transportSocket
  }
  mergeInto(ClusterSchema, cluster, value, lists)
}

/** Returns the hosts of an inbound cluster from its metadata; its name does not contain them. */
function inboundHosts({ metadata }: Cluster): string[] {
  const services = metadata?.filterMetadata.istio?.services
  return Array.isArray(services) ? services.map((service) => String((service as { host?: unknown } | null)?.host)) : []
}

function matchesCluster(cluster: Cluster, patch: ConfigPatch): boolean {
  const match = patch.match?.cluster
  if (!match) return true
  if (match.name) return match.name === cluster.name
  const [direction, port = '', subset = '', host = ''] = cluster.name.split('|')
  const hosts = direction === 'inbound' ? inboundHosts(cluster) : [host]
  return (
    (!match.service || hosts.includes(match.service)) &&
    (!match.subset || match.subset === subset) &&
    (!match.portNumber || String(match.portNumber) === port)
  )
}
