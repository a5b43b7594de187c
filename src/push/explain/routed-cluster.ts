/** Whether a cluster of a proxy can take a request, how it is reached, and why not. */
import { fromBinary } from '@bufbuild/protobuf'
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type { LbEndpoint } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { Arrival, RoutedCluster } from '../../../protocols/messages/explain.ts'
import { count } from '../../model/counts.ts'
import { clusterParts, outboundCluster } from '../../xds/names.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'
import { missingText, type SentResources } from './sent-resources.ts'
import { secretsOf, type WeightedCluster } from './taken-connection.ts'

/** Says of a cluster how it is reached, and why it cannot be. `isRedirected`: the connection has an original destination. */
export function routedCluster({ name, weight }: WeightedCluster, sent: SentResources, isRedirected: boolean): RoutedCluster {
  const cluster = sent.named(clusterType, name, ClusterSchema)
  if (!cluster) return { name, weight, tls: '', endpoints: 0, healthy: 0, because: absence(name, sent) }
  const assignment = assignmentOf(cluster, sent)
  const endpoints = assignment?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints) ?? []
  const healthy = endpoints.filter(({ healthStatus }) => !unhealthy.has(Number(healthStatus))).length
  const isResolved = assignment !== undefined || isEds(cluster)
  const isLost = isPassedOn(cluster) && !isRedirected
  const sockets = endpoints.length === 0 ? [cluster.transportSocket] : endpoints.map((endpoint) => socketTo(cluster, endpoint))
  const missing = sent.missing(sockets.flatMap((socket) => secretsOf(tlsIn(socket)?.commonTlsContext)))
  const unsecured = missing.length === 0 ? '' : `TLS to it cannot begin: ${missingText(missing, 'DestinationRule')}`
  const because = isLost ? withoutAddress : isResolved && endpoints.length === 0 ? emptiness(name, sent) : unsecured
  return { name, weight, tls: tlsOf(cluster, endpoints), endpoints: endpoints.length, healthy, because }
}

/** The maximum number of endpoints of a cluster that are told. */
const mostEndpoints = 500

/**
 * The endpoints of a cluster, where these are addresses that the proxy was sent. `passedName`: the server name of TLS of the client that is passed on as it
 * came, where the cluster adds none of its own; empty: there is none.
 */
export function endpointsOf(name: string, sent: SentResources, passedName: string): Arrival['endpoints'] {
  const cluster = sent.named(clusterType, name, ClusterSchema)
  const all = (cluster && assignmentOf(cluster, sent)?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)) ?? []
  return all.slice(0, mostEndpoints).flatMap((endpoint) => {
    const at = endpoint.hostIdentifier.case === 'endpoint' ? endpoint.hostIdentifier.value.address?.address : undefined
    if (!cluster || at?.case !== 'socketAddress' || at.value.portSpecifier.case !== 'portValue') return []
    const socket = socketTo(cluster, endpoint)
    const kind = kindOf(socket)
    const sni = kind === plainText ? passedName : (tlsIn(socket)?.sni ?? '')
    return { address: at.value.address, port: at.value.portSpecifier.value, isIdentified: kind === meshTls, sni }
  })
}

/** `UNHEALTHY`, `DRAINING` and `TIMEOUT` of `envoy.config.core.v3.HealthStatus`. */
const unhealthy: ReadonlySet<number> = new Set([2, 3, 4])

const isEds = ({ clusterDiscoveryType }: Cluster): boolean => clusterDiscoveryType.case === 'type' && Number(clusterDiscoveryType.value) === 3

/** Whether a cluster passes connections on to the addresses that they were opened to, and to none that a patch finds otherwise. */
const isPassedOn = ({ clusterDiscoveryType, lbConfig }: Cluster): boolean =>
  clusterDiscoveryType.case === 'type' && Number(clusterDiscoveryType.value) === 4 && lbConfig.case !== 'originalDstLbConfig'

/** The reason where such a cluster has nowhere to pass a connection on to. */
const withoutAddress =
  'the connection was opened to the proxy itself, to a port from which nothing is redirected, so there is no other address to pass it on to'

/** The endpoints of a cluster: its own, or those that the proxy was sent for it; undefined where it finds them by itself. */
function assignmentOf(cluster: Cluster, sent: SentResources): ClusterLoadAssignment | undefined {
  if (!isEds(cluster)) return cluster.loadAssignment
  return sent.named(endpointType, cluster.edsClusterConfig?.serviceName || cluster.name, ClusterLoadAssignmentSchema)
}

/** Why the proxy does not have a cluster. */
function absence(name: string, sent: SentResources): string {
  const { port, subset, host } = clusterParts(name)
  if (host === '') return `the proxy does not have cluster ${name}`
  const names = sent.names(clusterType)
  if (subset !== '' && names.includes(outboundCluster(Number(port), '', host)))
    return `no DestinationRule that counts for ${host} here has a subset ${subset}`
  const ports = names.filter((each) => each.startsWith('outbound|') && each.endsWith(`||${host}`)).map((each) => clusterParts(each).port)
  return ports.length > 0 ? `${host} has no port ${port}; it has ${ports.join(', ')}` : `no service that the proxy sees is ${host}`
}

/** Why a cluster has no endpoints. */
function emptiness(name: string, sent: SentResources): string {
  const { port, subset, host } = clusterParts(name)
  if (host === '') return `${name} has no endpoints`
  if (subset === '') return `${host} has no endpoints on port ${port}`
  const all = sent.named(endpointType, outboundCluster(Number(port), '', host), ClusterLoadAssignmentSchema)
  const whole = all?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints).length ?? 0
  return whole === 0
    ? `${host} has no endpoints on port ${port}`
    : `subset ${subset} selects none of the ${count(whole, 'endpoint')} of ${host}: no endpoint with its labels is ready and reached from the network of the proxy`
}

/** What connections to the endpoints of a cluster are. */
function tlsOf(cluster: Cluster, endpoints: readonly LbEndpoint[]): string {
  if (cluster.transportSocketMatches.length === 0) return kindOf(cluster.transportSocket)
  const kinds = endpoints.map((endpoint) => kindOf(socketTo(cluster, endpoint)))
  const counts = [...Map.groupBy(kinds, (kind) => kind)].map(([kind, { length }]) => [kind, length] as const)
  if (counts.length === 1) return counts[0]?.[0] ?? ''
  return counts.map(([kind, number]) => `${kind} to ${number}`).join(', ')
}

/** The transport socket of a connection to one endpoint. */
function socketTo({ transportSocket, transportSocketMatches }: Cluster, endpoint: LbEndpoint): TransportSocket | undefined {
  const labels = endpoint.metadata?.filterMetadata['envoy.transport_socket_match'] ?? {}
  const match = transportSocketMatches.find(({ match: wanted = {} }) => Object.entries(wanted).every(([key, value]) => labels[key] === value))
  return match ? match.transportSocket : transportSocket
}

/** Whether connections of a kind (`RoutedCluster.tls`) have TLS that the proxy begins and the workload ends. */
export const isOwnTls = (kind: string): boolean => /^(mutual )?TLS(?= \(SNI|$)/.test(kind)

const meshTls = 'mutual TLS of the mesh'
const plainText = 'plain text'

const packedIn = (socket: TransportSocket | undefined) => (socket?.configType.case === 'typedConfig' ? socket.configType.value : undefined)

/** The TLS of a transport socket; undefined: it is another one. */
function tlsIn(socket: TransportSocket | undefined) {
  const packed = packedIn(socket)
  return packed?.typeUrl.endsWith(`/${UpstreamTlsContextSchema.typeName}`) ? fromBinary(UpstreamTlsContextSchema, packed.value) : undefined
}

function kindOf(socket: TransportSocket | undefined): string {
  const packed = packedIn(socket)
  if (!packed || packed.typeUrl.endsWith('.RawBuffer')) return plainText
  const tls = tlsIn(socket)
  if (!tls) return socket?.name ?? ''
  const { commonTlsContext, sni } = tls
  const { alpnProtocols = [], tlsCertificateSdsSecretConfigs = [], tlsCertificates = [] } = commonTlsContext ?? {}
  if (alpnProtocols.includes('istio')) return meshTls
  const named = sni === '' ? '' : ` (SNI ${sni})`
  return `${tlsCertificateSdsSecretConfigs.length + tlsCertificates.length > 0 ? 'mutual TLS' : 'TLS'}${named}`
}
