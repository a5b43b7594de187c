/** A cable between two clusters, which makes one flat network of them (test/cluster/README.md). It goes with either of them. */
import { spawnSync } from 'node:child_process'
import type { TestCluster } from './cluster.ts'

/** Joins two clusters: pods and nodes of each reach those of the other. A cluster may have cables to several others, each with addresses of its own. */
export function joinByCable(one: TestCluster, other: TestCluster): void {
  const [low, high] = one.index < other.index ? [one.index, other.index] : [other.index, one.index]
  const address = ({ index }: TestCluster) => `172.31.${low}.${4 * high + (index === low ? 1 : 2)}`
  const ends = [
    { own: one, to: other, address: address(one), via: address(other) },
    { own: other, to: one, address: address(other), via: address(one) },
  ]
  const name = (to: TestCluster) => `to-${to.index}`
  ip('link', 'add', name(other), 'netns', one.network, 'type', 'veth', 'peer', 'name', name(one), 'netns', other.network)
  for (const { own, to, address } of ends) {
    ip('-n', own.network, 'addr', 'add', `${address}/30`, 'dev', name(to))
    ip('-n', own.network, 'link', 'set', name(to), 'up')
  }
  for (const { own, to, via } of ends)
    for (const net of [`10.${100 + to.index}.0.0/16`, `172.30.${to.index}.0/24`]) ip('-n', own.network, 'route', 'add', net, 'via', via)
}

/**
 * Leaves of the ways from one cluster to the pods of another only those to some addresses, which answers of the cluster need too. Returns what
 * gives the others back.
 */
export function narrow(from: TestCluster, to: TestCluster, ...addresses: readonly string[]): () => void {
  const [, via = ''] = /via (\S+)/.exec(ip('-n', from.network, 'route', 'show', `10.${100 + to.index}.0.0/16`)) ?? []
  for (const address of addresses) ip('-n', from.network, 'route', 'add', `${address}/32`, 'via', via)
  const all = `10.${100 + to.index}.0.0/16`
  ip('-n', from.network, 'route', 'del', all)
  return () => void ip('-n', from.network, 'route', 'add', all, 'via', via)
}

function ip(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('ip', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`)
  return stdout
}
