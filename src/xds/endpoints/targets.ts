/**
 * Which addresses the endpoints of one service port become for a caller: those of its own network themselves, those of other networks the
 * gateways of these (docs/resources.md, E3 to E5).
 */
import type { Endpoint, ServicePort } from '../../../protocols/data.ts'
import { portOf, servesPort } from '../../model/workload.ts'
import { isMutualTlsLabel } from '../../names/mesh-names.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { withNetworks } from '../../snapshot/networks.ts'
import { mutualTls, peersFor } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Traits } from '../traits.ts'
import type { PlacedLocality } from './locality.ts'

/** The largest weight, and the largest sum of weights, that Envoy accepts. */
export const largestWeight = 4_294_967_295

/** An address to send traffic to. */
export interface Target {
  readonly address: string
  readonly port: number
  readonly weight: number
  /** Whether it accepts mutual TLS. */
  readonly isMutualTls: boolean
  /** Whether the address is that of a gateway, which stands for endpoints of its network. */
  readonly isGateway: boolean
  /** The endpoint; for a gateway one of those that it stands for, which are of one network and locality and differ in all else. */
  readonly endpoint: Endpoint
}

/** Whether a workload accepts mutual TLS on a port: it has a proxy of the mesh, and no policy disables mutual TLS on the port. */
export function takesMutualTls(endpoint: Endpoint, port: number, snapshot: MeshSnapshot): boolean {
  if (!hasProxy(endpoint, snapshot)) return false
  const { policies, mesh } = snapshot
  return policies.peers.size === 0 || mutualTls({ peers: peersFor(policies, mesh.rootNamespace, endpoint) }, port) !== 'DISABLE'
}

const hasProxy = (endpoint: Endpoint, { settings }: MeshSnapshot): boolean => {
  const mode = endpoint.labels[`security.${settings.names.domain}/tlsMode`]
  return mode === undefined ? endpoint.serviceAccount !== '' : isMutualTlsLabel(mode)
}

/**
 * Returns the product of the numbers of gateways of all networks, at most the largest weight. A product above that, which no realistic mesh
 * has, makes weights inexact.
 */
const productOf = (counts: readonly number[]): number => counts.reduce((product, count) => Math.min(product * count, largestWeight), 1)

/**
 * Returns the targets of a service port for a caller from the endpoints that serve it. A gateway forwards by SNI, which requires mutual TLS:
 * endpoints that do not accept it on this port are left out behind gateways, and all of them if the caller sends plain text (`isPlain`).
 */
export function targetsOf(
  endpoints: readonly Endpoint[],
  port: ServicePort,
  isPlain: boolean,
  snapshot: MeshSnapshot,
  { network, networkView: view }: Traits,
): readonly Target[] {
  const gateways = snapshot.networkGateways
  const product = gateways.size === 0 ? undefined : productOf([...gateways.values()].map((list) => list.length))
  const targets: Target[] = []
  const remote = new Map<string, { count: number; endpoint: Endpoint }>()
  for (const endpoint of endpoints) {
    if (view && !view.has(endpoint.network)) continue
    if (endpoint.network === network || !gateways.has(endpoint.network)) {
      const { address, weight } = endpoint
      if (address === '') continue
      const number = portOf(endpoint, port)
      const isMutualTls = takesMutualTls(endpoint, number, snapshot)
      targets.push({ address, port: number, weight: product ?? weight, isMutualTls, isGateway: false, endpoint })
    } else if (!isPlain && takesMutualTls(endpoint, portOf(endpoint, port), snapshot)) {
      const place = JSON.stringify([endpoint.network, endpoint.locality])
      const known = remote.get(place)
      if (known) known.count++
      else remote.set(place, { count: 1, endpoint })
    }
  }
  for (const { count, endpoint } of remote.values()) {
    const list = gateways.get(endpoint.network) ?? []
    for (const gateway of list)
      targets.push({ ...gateway, weight: (count * (product ?? 1)) / list.length, isMutualTls: true, isGateway: true, endpoint })
  }
  return targets
}

/**
 * Returns the networks with endpoints of a service that a caller does not reach because they accept mutual TLS on no port and stand behind
 * gateways, each with such endpoints.
 */
export function unreachableEndpoints(
  state: ServiceState,
  snapshot: MeshSnapshot,
  { network, networkView: view }: Traits,
): ReadonlyMap<string, readonly Endpoint[]> {
  const found = new Map<string, Endpoint[]>()
  if (snapshot.networkGateways.size === 0) return found
  const isLost = (endpoint: Endpoint) =>
    endpoint.network !== network &&
    snapshot.networkGateways.has(endpoint.network) &&
    (!view || view.has(endpoint.network)) &&
    !state.service.ports.some((port) => servesPort(endpoint, port) && takesMutualTls(endpoint, portOf(endpoint, port), snapshot))
  for (const endpoint of withNetworks(state, snapshot.networks)) {
    if (!isLost(endpoint)) continue
    const list = found.get(endpoint.network)
    if (list) list.push(endpoint)
    else found.set(endpoint.network, [endpoint])
  }
  return found
}

/** The targets of a locality, with their weights within it. */
export interface PlacedTargets extends PlacedLocality {
  readonly targets: readonly (readonly [target: Target, weight: number])[]
}

/**
 * Returns the localities, of the highest priority first, so that no gateway is in two of them, because Envoy keeps the first of equal
 * addresses and drops the others with their weights: each gateway is in the first one that has it, with the share of the traffic that it
 * has in all localities of this priority. Localities that have no target left are removed, and priorities have no gaps.
 */
export function withoutRepeatedGateways(placed: readonly PlacedTargets[]): readonly PlacedTargets[] {
  if (!placed.some(({ targets }) => targets.some(([{ isGateway }]) => isGateway))) return placed
  const groups = placed.map((group) => ({
    ...group,
    total: group.targets.reduce((sum, [, weight]) => sum + weight, 0),
    kept: [] as [Target, number][],
  }))
  const first = new Map<string, { group: (typeof groups)[number]; entry: [Target, number] }>()
  for (const group of groups)
    for (const [target, weight] of group.targets) {
      const key = `${target.address} ${target.port}`
      const known = target.isGateway ? first.get(key) : undefined
      const entry: [Target, number] = [target, weight]
      if (!known) {
        group.kept.push(entry)
        if (target.isGateway) first.set(key, { group, entry })
        continue
      }
      const share = (group.weight * weight) / group.total
      group.weight -= share
      group.total -= weight
      if (known.group.priority !== group.priority) continue
      // The weight that is this share of the traffic in the other locality.
      const scaled = (share * known.group.total) / known.group.weight
      known.entry[1] += scaled
      known.group.total += scaled
      known.group.weight += share
    }
  const left = groups.filter(({ kept }) => kept.length > 0)
  const priorities = [...new Set(left.map(({ priority }) => priority))]
  const weights = whole(left.map(({ weight }) => weight))
  return left.map(({ locality, priority, kept }, index) => {
    const parts = whole(kept.map(([, weight]) => weight))
    const targets = kept.map(([target], at): [Target, number] => [target, parts[at] ?? 1])
    return { locality, weight: weights[index] ?? 1, priority: priorities.indexOf(priority), targets }
  })
}

/** Returns weights in whole numbers, at least 1, whose ratios differ by at most a thousandth of a weight and whose sum Envoy accepts. */
function whole(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const isWhole = weights.every((weight) => Math.abs(weight - Math.round(weight)) < 1e-6)
  const factor = Math.min(isWhole ? 1 : 1000, (largestWeight - weights.length) / total)
  return weights.map((weight) => Math.max(1, Math.round(weight * factor)))
}
