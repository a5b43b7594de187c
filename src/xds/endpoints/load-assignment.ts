/**
 * Load assignments: `envoy.config.endpoint.v3.ClusterLoadAssignment` from endpoints, networks and locality settings (docs/resources.md, E1
 * to E5).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { Endpoint, ServicePort } from '../../../protocols/data.ts'
import type { LbEndpointSchema, LocalityLbEndpointsSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { labelsMatch } from '../../model/match.ts'
import { compare } from '../../model/order.ts'
import { portOf, servesPort } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { Subset } from '../../snapshot/destination-rules.ts'
import { withNetworks } from '../../snapshot/networks.ts'
import { mutualTls, peersFor } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { PolicyInForce } from '../clusters/traffic-policy.ts'
import { endpointAddress } from '../message.ts'
import { isSniName } from '../names.ts'
import type { Traits } from '../traits.ts'
import { type PlacedLocality, placeLocalities } from './locality.ts'

type LbEndpoint = MessageInitShape<typeof LbEndpointSchema>
type LocalityLbEndpoints = MessageInitShape<typeof LocalityLbEndpointsSchema>

/**
 * An endpoint to send traffic to. `gateway` is set to a port if the address is that of a gateway which stands for endpoints of its network.
 */
interface Target {
  readonly endpoint: Endpoint
  readonly gateway?: number
}

const largestWeight = 4_294_967_295

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
  const wanted = subset?.labels
  const groups = new Map<string, LbEndpoint[]>()
  const targets = reachable(withNetworks(state, snapshot.networks), snapshot, traits).filter(
    ({ endpoint }) => endpoint.address !== '' && servesPort(endpoint, port) && (!wanted || labelsMatch(wanted, endpoint.labels)),
  )
  // Traffic to a cluster with an SNI name is mutual TLS of callers, which must not reach an endpoint that would accept it as plain text
  // (docs/resources.md, G6).
  const taken = isSniName(name) ? targets.filter(({ endpoint }) => takesMutualTls(endpoint, portOf(endpoint, port), snapshot)) : targets
  const weigh = fitting(taken)
  for (const { endpoint, gateway } of taken) {
    const list = groups.get(endpoint.locality)
    const entry = lbEndpoint(endpoint, gateway ?? portOf(endpoint, port), weigh(endpoint.weight), snapshot)
    if (list) list.push(entry)
    else groups.set(endpoint.locality, [entry])
  }
  const placed = [...groups.entries()]
    .sort(([one], [other]) => compare(one, other))
    .map(
      ([locality, endpoints]): PlacedLocality => ({
        locality,
        weight: endpoints.reduce((sum, entry) => sum + (entry.loadBalancingWeight ?? 1), 0),
        priority: 0,
      }),
    )
  const endpoints = placeLocalities(placed, traits.locality, policy, snapshot)
    .sort((one, other) => one.priority - other.priority)
    .map((group) => localityEndpoints(group, groups.get(group.locality) ?? []))
  return create(ClusterLoadAssignmentSchema, { clusterName: name, endpoints })
}

/**
 * Returns a function that scales weights. Envoy requires sums of weights to fit into 32 bits: larger sums are scaled down, each weight to
 * at least 1.
 */
function fitting(targets: readonly Target[]): (weight: number) => number {
  const total = targets.reduce((sum, { endpoint }) => sum + Math.max(1, endpoint.weight), 0)
  if (total <= largestWeight) return (weight) => Math.max(1, Math.floor(weight))
  const factor = (largestWeight - targets.length) / total
  return (weight) => Math.max(1, Math.floor(weight * factor))
}

function localityEndpoints(group: PlacedLocality, lbEndpoints: LbEndpoint[]): LocalityLbEndpoints {
  const [region = '', zone = '', subZone = ''] = group.locality.split('/')
  return {
    lbEndpoints,
    loadBalancingWeight: group.weight,
    priority: group.priority,
    ...(group.locality === '' ? {} : { locality: { region, zone, subZone } }),
  }
}

function lbEndpoint(endpoint: Endpoint, port: number, weight: number, snapshot: MeshSnapshot): LbEndpoint {
  return {
    hostIdentifier: { case: 'endpoint', value: { address: endpointAddress(endpoint.address, port) } },
    loadBalancingWeight: weight,
    ...metadataOf(endpoint, port, snapshot),
  }
}

function metadataOf(endpoint: Endpoint, port: number, snapshot: MeshSnapshot): Pick<LbEndpoint, 'metadata'> {
  const telemetry = snapshot.settings.features.PILOT_ENDPOINT_TELEMETRY_LABEL && endpoint.workload !== ''
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
    ...(takesMutualTls(endpoint, port, snapshot) ? { 'envoy.transport_socket_match': { tlsMode: 'istio' } } : {}),
  }
  return Object.keys(filterMetadata).length > 0 ? { metadata: { filterMetadata } } : {}
}

/** Whether a workload accepts mutual TLS on a port: it has a proxy of the mesh, and no policy disables mutual TLS on the port. */
export function takesMutualTls(endpoint: Endpoint, port: number, snapshot: MeshSnapshot): boolean {
  if (!hasProxy(endpoint, snapshot)) return false
  const { policies, mesh } = snapshot
  return policies.peers.size === 0 || mutualTls({ peers: peersFor(policies, mesh.rootNamespace, endpoint) }, port) !== 'DISABLE'
}

const hasProxy = (endpoint: Endpoint, { settings }: MeshSnapshot): boolean => {
  const mode = endpoint.labels[`security.${settings.names.domain}/tlsMode`]
  return mode === undefined ? endpoint.serviceAccount !== '' : mode === 'istio'
}

/**
 * Returns the product of the numbers of gateways of all networks, at most the largest weight. A product above that, which no realistic mesh
 * has, makes weights inexact.
 */
const productOf = (counts: readonly number[]): number => counts.reduce((product, count) => Math.min(product * count, largestWeight), 1)

/**
 * Returns the endpoints that a proxy can reach: those of its own network directly, those of other networks through the gateways of these.
 */
function reachable(endpoints: readonly Endpoint[], snapshot: MeshSnapshot, traits: Traits): readonly Target[] {
  const view = traits.networkView
  const seen = view ? endpoints.filter((endpoint) => view.has(endpoint.network)) : endpoints
  const gateways = snapshot.networkGateways
  if (gateways.size === 0) return seen.map((endpoint) => ({ endpoint }))
  const product = productOf([...gateways.values()].map((list) => list.length))
  const result: Target[] = []
  const remote = new Map<string, { count: number; sample: Endpoint }>()
  for (const endpoint of seen) {
    if (endpoint.network === traits.network || !gateways.has(endpoint.network)) {
      result.push({ endpoint: { ...endpoint, weight: product } })
      continue
    }
    const group = remote.get(`${endpoint.network}|${endpoint.locality}`)
    if (group) group.count++
    else remote.set(`${endpoint.network}|${endpoint.locality}`, { count: 1, sample: endpoint })
  }
  // A gateway forwards by SNI, which requires mutual TLS. Endpoints without it are left out.
  for (const { count, sample } of remote.values()) {
    if (!hasProxy(sample, snapshot)) continue
    const list = gateways.get(sample.network) ?? []
    for (const { address, port } of list)
      result.push({ endpoint: { ...sample, address, workload: '', weight: (count * product) / list.length }, gateway: port })
  }
  return result
}
