/** The networks that clusters have by a label of their system namespace (docs/resources.md, S7). */
import type { Namespace, Pod, ProxyNode } from '../../protocols/data.ts'
import type { MeshNetworks } from '../config/mesh-config.ts'

/** The network of each cluster whose system namespace has the label. The empty cluster stands for all others. */
export type SystemNetworks = ReadonlyMap<string, string>

/** The registries whose endpoints are of the clusters of sources that name none. */
const providers = ['Orchestrator', 'ServiceEntry', 'Mock']

/** The name of the label. `domain` is that of the mesh. */
const networkLabel = (domain: string): string => `topology.${domain}/network`

/** Returns the networks of clusters after a change of a system namespace. It is the same map where its label is. */
export function withSystemNamespace(
  networks: SystemNetworks,
  { before, now }: { readonly before: Namespace | undefined; readonly now: Namespace | undefined },
  domain: string,
): SystemNetworks {
  const changed = new Map(networks)
  if (before) changed.delete(before.cluster)
  const network = now?.labels[networkLabel(domain)]
  if (now && network) changed.set(now.cluster, network)
  const isSame = changed.size === networks.size && [...changed].every(([cluster, each]) => networks.get(cluster) === each)
  return isSame ? networks : changed
}

/**
 * Returns the networks with those of clusters added: for the endpoints of their registries that have no other network. What the networks say
 * of a registry comes first. ServiceEntries belong to the own cluster.
 */
export function withSystemNetworks(networks: MeshNetworks, system: SystemNetworks, ownCluster: string): MeshNetworks {
  if (system.size === 0) return networks
  const given = networks.networks ?? {}
  const named = new Set(Object.values(given).flatMap(({ endpoints = [] }) => endpoints.flatMap(({ fromRegistry }) => fromRegistry ?? [])))
  const all = new Map(Object.entries(given))
  const add = (registry: string, network: string) => {
    if (named.has(registry)) return
    named.add(registry)
    const known = all.get(network) ?? {}
    all.set(network, { ...known, endpoints: [...(known.endpoints ?? []), { fromRegistry: registry }] })
  }
  const own = system.get(ownCluster) ?? system.get('')
  for (const [cluster, network] of system) if (cluster !== '') add(cluster, network)
  if (own !== undefined) add('ServiceEntry', own)
  const others = system.get('')
  if (others !== undefined) for (const provider of providers) add(provider, others)
  return { ...networks, networks: Object.fromEntries(all) }
}

/** The network of a proxy: the one that it names, else that of its pod's label, else that of its cluster. */
export function networkOf(
  node: Pick<ProxyNode, 'network' | 'clusterId'>,
  pod: Pick<Pod, 'labels'> | undefined,
  system: SystemNetworks,
  domain: string,
): string {
  return node.network || (pod?.labels[networkLabel(domain)] ?? system.get(node.clusterId) ?? system.get('') ?? '')
}
