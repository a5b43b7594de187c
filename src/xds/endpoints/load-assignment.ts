/**
 * Load assignments: `envoy.config.endpoint.v3.ClusterLoadAssignment` from endpoints, networks and locality settings (docs/resources.md, E1
 * to E5).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { ServicePort } from '../../../protocols/data.ts'
import type { LbEndpointSchema, LocalityLbEndpointsSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { labelsMatch } from '../../model/match.ts'
import { compare } from '../../model/order.ts'
import { servesPort, takingTraffic } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { Subset } from '../../snapshot/destination-rules.ts'
import { withNetworks } from '../../snapshot/networks.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { PolicyInForce } from '../clusters/traffic-policy.ts'
import { endpointAddress } from '../message.ts'
import { isSniName } from '../names.ts'
import type { Traits } from '../traits.ts'
import { type PlacedLocality, placeLocalities } from './locality.ts'
import { largestWeight, type PlacedTargets, type Target, targetsOf, withoutRepeatedGateways } from './targets.ts'

type LbEndpoint = MessageInitShape<typeof LbEndpointSchema>
type LocalityLbEndpoints = MessageInitShape<typeof LocalityLbEndpointsSchema>

/** Returns the endpoints of one service port, of a subset if one is given, grouped by locality. */
export function loadAssignment(
  name: string,
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  policy: PolicyInForce,
  snapshot: MeshSnapshot,
  traits: Traits,
): ClusterLoadAssignment {
  const serving = takingTraffic(
    withNetworks(state, snapshot.networks).filter((endpoint) => servesPort(endpoint, port) && labelsMatch(subset?.labels, endpoint.labels)),
  )
  // Traffic to a cluster with an SNI name is mutual TLS of callers, whatever the rule says, and must not reach an endpoint that would accept
  // it as plain text (docs/resources.md, G6).
  const forwards = isSniName(name)
  const targets = targetsOf(serving, port, !forwards && policy.tls?.mode === 'DISABLE', snapshot, traits)
  const taken = forwards ? targets.filter(({ isMutualTls }) => isMutualTls) : targets
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
    .map(([locality, list]): PlacedLocality => ({ locality, weight: list.reduce((sum, [, weight]) => sum + weight, 0), priority: 0 }))
  const placed = placeLocalities(localities, traits.locality, policy, snapshot)
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
