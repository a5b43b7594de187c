/** Which pod the workload of a proxy is (docs/resources.md, O2). */
import type { Pod, ProxyNode } from '../../protocols/data.ts'
import { canonicalAddress } from '../config/addresses.ts'
import { append } from '../model/lists.ts'
import { compare } from '../model/order.ts'
import { OverlaidMap } from '../model/overlaid-map.ts'
import { proxyName } from '../model/proxy.ts'
import { sameFields } from '../registry/slices.ts'

/**
 * The pods of all clusters by what proxies are found by: `<namespace>/<name>`, and `<namespace>@<address>` for pods with addresses of their
 * own. Several clusters may have such a pod; these are in the order of their clusters.
 */
export type PodIndex = ReadonlyMap<string, readonly Pod[]>

/** The index without pods. */
export const noPods: PodIndex = OverlaidMap.empty<string, readonly Pod[]>()

/** What of an index the pod of a proxy is found by. */
export interface PodLookup {
  /** Whether there is any pod. */
  readonly isAny: boolean
  get(key: string): readonly Pod[] | undefined
}

/**
 * Returns the pod of a proxy's namespace that has the proxy's name, otherwise the one that has its first address. A pod of another cluster
 * than the proxy names is not meant.
 */
export function podOf({ isAny, ...pods }: PodLookup, node: Pick<ProxyNode, 'id' | 'namespace' | 'addresses' | 'clusterId'>): Pod | undefined {
  if (!isAny) return undefined
  const mayBe = ({ cluster }: Pod) => cluster === '' || node.clusterId === '' || cluster === node.clusterId
  const name = nameOf(node)
  const named = name === '' ? undefined : pods.get(`${node.namespace}/${name}`)?.find(mayBe)
  if (named) return named
  const [address] = node.addresses
  return address === undefined ? undefined : pods.get(`${node.namespace}@${canonicalAddress(address)}`)?.find(mayBe)
}

/** The name of the pod in a node id, whose third part is `<pod>.<namespace>`. Empty where it names another namespace, or none. */
function nameOf(node: Pick<ProxyNode, 'id' | 'namespace'>): string {
  const name = proxyName(node)
  const end = `.${node.namespace}`
  return name.endsWith(end) ? name.slice(0, -end.length) : ''
}

/** Whether two lists of pods make no difference to the proxies that are found by them. */
export function samePods(one: readonly Pod[], other: readonly Pod[]): boolean {
  return one.length === other.length && one.every((pod, index) => isAlike(pod, other[index] as Pod))
}

/** Whether two lists of pods are on the same nodes. */
export function sameNodes(one: readonly Pod[], other: readonly Pod[]): boolean {
  return samePods(one, other) && one.every((pod, index) => pod.spec.node === other[index]?.spec.node)
}

/** Labels keep their identity while they are equal (`ClusterObjects`). */
const isAlike = (one: Pod, other: Pod): boolean =>
  one.cluster === other.cluster && one.labels === other.labels && sameFields(one.spec.ports ?? {}, other.spec.ports ?? {})

/** The keys under which an index has a pod. */
function keysOf({ namespace, name, spec }: Pod): string[] {
  const addresses = spec.hostNetwork ? [] : spec.addresses.map((address) => `${namespace}@${address}`)
  return [`${namespace}/${name}`, ...addresses]
}

/** Returns the index after changes of pods. What they cost follows from the changed pods. */
export function withPods(index: PodIndex, changes: Iterable<{ readonly before: Pod | undefined; readonly now: Pod | undefined }>): PodIndex {
  const changed = new Map<string, Pod[]>()
  const listAt = (key: string): Pod[] => {
    const known = changed.get(key) ?? [...(index.get(key) ?? [])]
    changed.set(key, known)
    return known
  }
  for (const { before, now } of changes) {
    for (const key of before ? keysOf(before) : []) {
      const at = listAt(key).indexOf(before as Pod)
      if (at >= 0) changed.get(key)?.splice(at, 1)
    }
    for (const key of now ? keysOf(now) : []) {
      listAt(key)
      append(changed, key, now as Pod)
    }
  }
  if (changed.size === 0) return index
  for (const list of changed.values()) list.sort(byCluster)
  const map = index instanceof OverlaidMap ? (index as OverlaidMap<string, readonly Pod[]>) : OverlaidMap.empty<string, readonly Pod[]>()
  return map.with(new Map([...changed].map(([key, list]) => [key, list.length > 0 ? list : undefined])))
}

/** Pods of one cluster and address are in the order of their names; the last one that was created may have it. */
function byCluster(one: Pod, other: Pod): number {
  return compare(one.cluster, other.cluster) || other.createdAt - one.createdAt || compare(one.name, other.name)
}
