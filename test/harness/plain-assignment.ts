/**
 * The load assignment of a service port made at once from all endpoints of the service, without slices, runs and kept bytes: what the
 * assembled ones are held against.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { Endpoint, ServicePort } from '../../protocols/data.ts'
import type { LbEndpointSchema, LocalityLbEndpointsSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { labelsMatch } from '../../src/model/match.ts'
import { compare } from '../../src/model/order.ts'
import { portOf, servesPort, takingTraffic } from '../../src/model/workload.ts'
import type { ServiceState } from '../../src/registry/merged-services.ts'
import type { Subset } from '../../src/snapshot/destination-rules.ts'
import { withNetworks } from '../../src/snapshot/networks.ts'
import type { MeshSnapshot } from '../../src/snapshot/snapshot.ts'
import type { PolicyInForce } from '../../src/xds/clusters/traffic-policy.ts'
import { type PlacedLocality, placeLocalities } from '../../src/xds/endpoints/locality.ts'
import { largestWeight, type Target, takesMutualTls } from '../../src/xds/endpoints/targets.ts'
import { endpointAddress } from '../../src/xds/message.ts'
import { isSniName } from '../../src/xds/names.ts'
import type { Traits } from '../../src/xds/traits.ts'

type LbEndpoint = MessageInitShape<typeof LbEndpointSchema>
type LocalityLbEndpoints = MessageInitShape<typeof LocalityLbEndpointsSchema>

/** Returns the endpoints of one service port, of a subset if one is given, grouped by locality. */
export function plainAssignment(
  name: string,
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  policy: PolicyInForce,
  snapshot: MeshSnapshot,
  traits: Traits,
): ClusterLoadAssignment {
  const serving = takingTraffic(
    state.shards
      .flatMap((shard) => withNetworks(shard.endpoints, shard, snapshot.networks).map((endpoint) => ({ cluster: shard.cluster, ...endpoint })))
      .filter((endpoint) => servesPort(endpoint, port) && labelsMatch(subset?.labels, endpoint.labels)),
  )
  // Traffic to a cluster with an SNI name is mutual TLS of callers, whatever the rule says, and must not reach an endpoint that would accept
  // it as plain text (docs/resources.md, G6).
  const forwards = isSniName(name)
  const targets = targetsOf(serving, port, !forwards && policy.tls?.mode === 'DISABLE', snapshot, traits)
  const mutual = targets.filter(({ isMutualTls }) => isMutualTls)
  const stays = forwards && (traits.network === '' || mutual.some(({ isGateway }) => !isGateway))
  const taken = stays ? mutual.filter(({ isGateway }) => !isGateway) : forwards ? mutual : targets
  const weigh = fitting(taken)
  const groups = new Map<string, [target: Target, weight: number][]>()
  for (const target of taken) {
    const { locality } = target.endpoint
    const list = groups.get(locality)
    const entry: [Target, number] = [target, weigh(target.weight)]
    if (list) list.push(entry)
    else groups.set(locality, [entry])
  }
  const localities = [...groups]
    .sort(([one], [other]) => compare(one, other))
    .map(([locality, list]): PlacedLocality => ({ locality, isNear: false, weight: list.reduce((sum, [, weight]) => sum + weight, 0), priority: 0 }))
  const distributed = placeLocalities(localities, traits.locality, policy, snapshot)
  const placed = (stays && distributed.length === 0 ? localities : distributed)
    .sort((one, other) => one.priority - other.priority)
    .map((group) => ({ ...group, targets: groups.get(group.locality) ?? [] }))
  const endpoints = withoutRepeatedGateways(placed).map((group) => localityEndpoints(group, snapshot, traits))
  return create(ClusterLoadAssignmentSchema, { clusterName: name, endpoints })
}

/**
 * Returns a function that scales weights. Envoy requires sums of weights to fit into 32 bits: larger sums are scaled down, each weight to
 * at least 1.
 */
function fitting(targets: readonly Target[]): (weight: number) => number {
  const total = targets.reduce((sum, { weight }) => sum + Math.max(1, weight), 0)
  if (total <= largestWeight) return (weight) => Math.max(1, Math.floor(weight))
  const factor = (largestWeight - targets.length) / total
  return (weight) => Math.max(1, Math.floor(weight * factor))
}

function localityEndpoints(
  { locality, weight, priority, targets }: PlacedTargets,
  snapshot: MeshSnapshot,
  { isProxyless }: Traits,
): LocalityLbEndpoints {
  const [region = '', zone = '', subZone = ''] = locality.split('/')
  return {
    lbEndpoints: targets.map(([target, share]) => lbEndpoint(target, share, snapshot)),
    loadBalancingWeight: weight,
    priority,
    // gRPC libraries refuse endpoints without a locality, even an empty one.
    ...(locality === '' && !isProxyless ? {} : { locality: { region, zone, subZone } }),
  }
}

function lbEndpoint(target: Target, weight: number, snapshot: MeshSnapshot): LbEndpoint {
  return {
    hostIdentifier: { case: 'endpoint', value: { address: endpointAddress(target.address, target.port) } },
    loadBalancingWeight: weight,
    ...metadataOf(target, snapshot),
  }
}

function metadataOf({ endpoint, isGateway, isMutualTls }: Target, snapshot: MeshSnapshot): Pick<LbEndpoint, 'metadata'> {
  const telemetry = snapshot.settings.features.PILOT_ENDPOINT_TELEMETRY_LABEL && endpoint.workload !== '' && !isGateway
  const istio: Record<string, string> = {}
  const owned = `service.${snapshot.settings.names.domain}`
  if (endpoint.network !== '') istio.network = endpoint.network
  if (telemetry) {
    const name = endpoint.labels[`${owned}/canonical-name`] ?? endpoint.labels.app ?? endpoint.workload
    const revision = endpoint.labels[`${owned}/canonical-revision`] ?? endpoint.labels.version ?? 'latest'
    istio.workload = [endpoint.workload, endpoint.namespace, name, revision].join(';')
  }
  const filterMetadata = {
    ...(Object.keys(istio).length > 0 ? { istio } : {}),
    ...(isMutualTls ? { 'envoy.transport_socket_match': { tlsMode: 'istio' } } : {}),
  }
  return Object.keys(filterMetadata).length > 0 ? { metadata: { filterMetadata } } : {}
}

const productOf = (counts: readonly number[]): number => counts.reduce((product, count) => Math.min(product * count, largestWeight), 1)

function targetsOf(
  endpoints: readonly Endpoint[],
  port: ServicePort,
  isPlain: boolean,
  snapshot: MeshSnapshot,
  { network, networkView: view }: Traits,
): readonly Target[] {
  const gateways = snapshot.networkGateways
  const lists = [...gateways.values()].flatMap((ofNetwork) => [...ofNetwork.values()])
  const product = lists.length === 0 ? undefined : productOf(lists.map((list) => list.length))
  const targets: Target[] = []
  const remote = new Map<string, { count: number; endpoint: Endpoint }>()
  const behind = ({ network: of, cluster = '' }: Endpoint) => gateways.get(of)?.get(cluster) ?? gateways.get(of)?.get('')
  for (const endpoint of endpoints) {
    if (view && !view.has(endpoint.network)) continue
    if (endpoint.network === network || !behind(endpoint)) {
      const { address, weight } = endpoint
      if (address === '') continue
      const number = portOf(endpoint, port)
      const isMutualTls = takesMutualTls(endpoint, number, snapshot)
      targets.push({ address, port: number, weight: product ?? weight, isMutualTls, isGateway: false, endpoint })
    } else if (!isPlain && takesMutualTls(endpoint, portOf(endpoint, port), snapshot)) {
      const place = JSON.stringify([endpoint.network, endpoint.cluster, endpoint.locality])
      const known = remote.get(place)
      if (known) known.count++
      else remote.set(place, { count: 1, endpoint })
    }
  }
  for (const { count, endpoint } of remote.values()) {
    const list = behind(endpoint) ?? []
    for (const gateway of list)
      targets.push({ ...gateway, weight: (count * (product ?? 1)) / list.length, isMutualTls: true, isGateway: true, endpoint })
  }
  return targets
}

/** The targets of a locality, with their weights within it. */
interface PlacedTargets extends PlacedLocality {
  readonly targets: readonly (readonly [target: Target, weight: number])[]
}

/**
 * Returns the localities, of the highest priority first, so that no gateway is in two of them, because Envoy keeps the first of equal
 * addresses and drops the others with their weights: each gateway is in the first one that has it, with the share of the traffic that it
 * has in all localities of this priority. Localities that have no target left are removed, and priorities have no gaps.
 */
function withoutRepeatedGateways(placed: readonly PlacedTargets[]): readonly PlacedTargets[] {
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
    return { locality, isNear: false, weight: weights[index] ?? 1, priority: priorities.indexOf(priority), targets }
  })
}

/** Returns weights in whole numbers, at least 1, whose ratios differ by at most a thousandth of a weight and whose sum Envoy accepts. */
function whole(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const isWhole = weights.every((weight) => Math.abs(weight - Math.round(weight)) < 1e-6)
  const factor = Math.min(isWhole ? 1 : 1000, (largestWeight - weights.length) / total)
  return weights.map((weight) => Math.max(1, Math.round(weight * factor)))
}
