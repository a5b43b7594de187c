/** Outbound clusters: `envoy.config.cluster.v3.Cluster` from services and DestinationRules (docs/resources.md, C1 to C11). */
import { create } from '@bufbuild/protobuf'
import type { Service, ServicePort } from '../../../protocols/data.ts'
import {
  type Cluster,
  Cluster_CommonLbConfig_LocalityWeightedLbConfigSchema,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  Cluster_LbPolicy,
  ClusterSchema,
} from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { HttpProtocolOptionsSchema } from '../../../protocols/gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js'
import { configKey } from '../../config/kinds.ts'
import { isHttp, isHttp2 } from '../../model/protocol.ts'
import { portOf, servesPort } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MergedRule, Subset } from '../../snapshot/destination-rules.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import { gatewaysTo } from '../../snapshot/passed-on.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Draft } from '../draft.ts'
import { loadAssignment, useOf } from '../endpoints/load-assignment.ts'
import { usesLocalityWeights } from '../endpoints/locality.ts'
import { sliceTargets, takesMutualTls } from '../endpoints/targets.ts'
import { durationOf, overAds, pack } from '../message.ts'
import { blackHole, outboundCluster, passthrough, sniCluster } from '../names.ts'
import { type OutboundTls, outboundSocket } from '../security/mutual-tls.ts'
import type { Traits } from '../traits.ts'
import {
  applyConnectionPool,
  applyPolicy,
  applyProxyProtocol,
  type ClusterInit,
  commonHttpOptions,
  http2Options,
  type PolicyInForce,
  plainSocket,
  servicePolicy,
  tlsSocket,
} from './traffic-policy.ts'

const httpOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions'
const maxConcurrentStreams = 1_073_741_824

/** Returns the clusters of a service: one for each port except UDP, and one for each subset of the port. */
export function outboundClusters(state: ServiceState, rule: MergedRule | undefined, snapshot: MeshSnapshot, traits: Traits): Draft<Cluster>[] {
  return clustersNamed(outboundCluster, state, rule, snapshot, traits)
}

/** Returns the same clusters under their SNI names, for a router that forwards mutual TLS by SNI. */
export function sniDnatClusters(state: ServiceState, rule: MergedRule | undefined, snapshot: MeshSnapshot, traits: Traits): Draft<Cluster>[] {
  return clustersNamed(sniCluster, state, rule, snapshot, traits)
}

function clustersNamed(
  nameOf: typeof outboundCluster,
  state: ServiceState,
  rule: MergedRule | undefined,
  snapshot: MeshSnapshot,
  traits: Traits,
): Draft<Cluster>[] {
  return state.service.ports
    .filter((port) => port.protocol !== 'udp')
    .flatMap((port) =>
      [undefined, ...(rule?.subsets ?? [])].map((subset) => ({
        name: nameOf(port.number, subset?.name ?? '', state.service.hostname),
        objects: () => objectsOf(state, rule),
        make: () => outboundClusterOf(state, port, subset, rule, snapshot, traits, nameOf),
      })),
    )
}

/** Returns the ids of the objects from which the resources of a service are made. */
export function objectsOf(state: ServiceState, rule: MergedRule | undefined): string[] {
  return [serviceKey(state.service), ...(rule?.sources ?? []).map(configKey)].sort()
}

function outboundClusterOf(
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  rule: MergedRule | undefined,
  snapshot: MeshSnapshot,
  traits: Traits,
  nameOf: typeof outboundCluster,
): Cluster | undefined {
  const { service } = state
  const name = nameOf(port.number, subset?.name ?? '', service.hostname)
  const cluster: ClusterInit = { name, altStatName: statName(snapshot.mesh.outboundClusterStatName, service, port, subset) }
  if (!applyDiscovery(cluster, state, port, subset, rule, snapshot, traits)) return undefined
  const policy = servicePolicy(service, rule, subset, port.number)
  applyPolicy(cluster, policy, snapshot, port.protocol)
  const http2 = applyHttp(cluster, port, policy, snapshot, traits)
  if (usesLocalityWeights(policy, snapshot))
    cluster.commonLbConfig = {
      ...cluster.commonLbConfig,
      localityConfigSpecifier: { case: 'localityWeightedLbConfig', value: create(Cluster_CommonLbConfig_LocalityWeightedLbConfigSchema) },
    }
  if (nameOf === outboundCluster) {
    applyTls(cluster, state, port, subset, policy, http2, snapshot, traits)
    applyProxyProtocol(cluster, policy)
  }
  cluster.metadata = { filterMetadata: { istio: metadataOf(state, port, subset, rule, snapshot) } }
  return create(ClusterSchema, cluster)
}

function applyDiscovery(
  cluster: ClusterInit,
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  rule: MergedRule | undefined,
  snapshot: MeshSnapshot,
  traits: Traits,
): boolean {
  const { service } = state
  const { features, mesh } = { features: snapshot.settings.features, mesh: snapshot.mesh }
  if (service.resolution === 'dns') {
    const policy = servicePolicy(service, rule, subset, port.number)
    const name = cluster.name as string
    const gateways = gatewaysTo(service, subset?.name ?? '', snapshot)
    const use = (cluster: string) => useOf(name, port, subset, policy, cluster, gateways)
    const targets = state.shards.map(({ endpoints, cluster }) => sliceTargets(endpoints, use(cluster), snapshot, traits))
    const assignment = loadAssignment(name, targets, policy, snapshot, traits)
    if (assignment.endpoints.length === 0) return false
    cluster.clusterDiscoveryType = { case: 'type', value: Cluster_DiscoveryType.STRICT_DNS }
    cluster.dnsLookupFamily = Cluster_DnsLookupFamily.V4_ONLY
    cluster.dnsRefreshRate = durationOf(mesh.dnsRefreshRate)
    cluster.respectDnsTtl = true
    cluster.loadAssignment = assignment
    return true
  }
  if (service.resolution === 'passthrough' && traits.type === 'sidecar' && !features.PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES) {
    cluster.clusterDiscoveryType = { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST }
    cluster.lbPolicy = Cluster_LbPolicy.CLUSTER_PROVIDED
    return true
  }
  cluster.clusterDiscoveryType = { case: 'type', value: Cluster_DiscoveryType.EDS }
  cluster.edsClusterConfig = {
    serviceName: cluster.name,
    edsConfig: { ...overAds, initialFetchTimeout: durationOf(features.PILOT_INITIAL_FETCH_TIMEOUT) },
  }
  return true
}

/** Sets the options of HTTP/2 and of sniffed protocols. Returns whether the cluster always uses HTTP/2. */
function applyHttp(cluster: ClusterInit, port: ServicePort, policy: PolicyInForce, snapshot: MeshSnapshot, traits: Traits): boolean {
  const { http } = policy.connectionPool ?? {}
  if (cluster.clusterDiscoveryType?.case === 'type' && cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.ORIGINAL_DST)
    cluster.lbPolicy = Cluster_LbPolicy.CLUSTER_PROVIDED
  const sniffed = port.protocol === 'unknown' && traits.type === 'sidecar' && snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  const upgrade =
    http?.h2UpgradePolicy && http.h2UpgradePolicy !== 'DEFAULT'
      ? http.h2UpgradePolicy
      : isHttp(port.protocol)
        ? snapshot.mesh.h2UpgradePolicy
        : 'DO_NOT_UPGRADE'
  const http2 = isHttp2(port.protocol) || (upgrade === 'UPGRADE' && !http?.useClientProtocol)
  const common = commonHttpOptions(policy.connectionPool)
  const followsClient = sniffed || http?.useClientProtocol
  if (!followsClient && !http2 && Object.keys(common).length === 0) return false
  const http2ProtocolOptions = { maxConcurrentStreams, ...http2Options(policy.connectionPool) }
  cluster.typedExtensionProtocolOptions = {
    [httpOptions]: pack(HttpProtocolOptionsSchema, {
      commonHttpProtocolOptions: common,
      upstreamProtocolOptions: followsClient
        ? { case: 'useDownstreamProtocolConfig', value: { httpProtocolOptions: {}, http2ProtocolOptions } }
        : {
            case: 'explicitHttpConfig',
            value: http2
              ? { protocolConfig: { case: 'http2ProtocolOptions', value: http2ProtocolOptions } }
              : { protocolConfig: { case: 'httpProtocolOptions', value: {} } },
          },
    }),
  }
  return http2
}

/** Sets TLS as the DestinationRule says, else mutual TLS for the endpoints that accept it (`enableAutoMtls`). */
function applyTls(
  cluster: ClusterInit,
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  policy: PolicyInForce,
  http2: boolean,
  snapshot: MeshSnapshot,
  traits: Traits,
): void {
  const { tls } = policy
  if (tls?.mode !== undefined && tls.mode !== 'MESH_MUTUAL') {
    if (tls.mode !== 'DISABLE') cluster.transportSocket = tlsSocket(tls, http2, traits, snapshot)
    return
  }
  const asked = tls?.mode === 'MESH_MUTUAL'
  const { service } = state
  const able = traits.certificates.client !== undefined || traits.certificates.agent
  if (!asked && (!able || service.external || !snapshot.mesh.enableAutoMtls)) return
  const target: OutboundTls = {
    sni: tls?.sni || sniCluster(port.number, subset?.name ?? '', service.hostname),
    accounts: tls?.subjectAltNames?.length ? tls.subjectAltNames : accountsOf(state, snapshot),
    protocol: http2 ? 'http2' : isHttp(port.protocol) ? 'http1' : 'other',
  }
  const socket = outboundSocket(traits.certificates, target, snapshot)
  const originalDestination =
    cluster.clusterDiscoveryType?.case === 'type' && cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.ORIGINAL_DST
  if (asked) cluster.transportSocket = socket
  else if (originalDestination) {
    // An original-destination cluster has no endpoints to match: mutual TLS is used only if all endpoints of the service accept it.
    const serving = state.endpoints.filter((endpoint) => servesPort(endpoint, port))
    if (serving.length > 0 && serving.every((endpoint) => takesMutualTls(endpoint, portOf(endpoint, port), snapshot)))
      cluster.transportSocket = socket
  } else
    cluster.transportSocketMatches = [
      { name: 'tlsMode-istio', match: { tlsMode: 'istio' }, transportSocket: socket },
      { name: 'tlsMode-disabled', match: {}, transportSocket: plainSocket() },
    ]
}

/**
 * Returns the names that certificates of a service's endpoints may have: those declared for it, else those of its endpoints. For a service of
 * the orchestrator the declared ones add to those of its endpoints (docs/resources.md, O11).
 */
export function accountsOf({ service, endpoints }: ServiceState, snapshot: MeshSnapshot): readonly string[] {
  const { provider, serviceAccounts, ownAccounts = [], namespace } = service
  if (serviceAccounts.length > 0 && provider !== 'Orchestrator') return serviceAccounts
  const nameOf = (of: string, account: string) => `spiffe://${snapshot.mesh.trustDomain}/ns/${of}/sa/${account}`
  const names = endpoints.flatMap((endpoint) => (endpoint.serviceAccount === '' ? [] : nameOf(endpoint.namespace, endpoint.serviceAccount)))
  return [...new Set([...names, ...serviceAccounts, ...ownAccounts.map((account) => nameOf(namespace, account))])].sort()
}

function metadataOf(
  state: ServiceState,
  port: ServicePort,
  subset: Subset | undefined,
  rule: MergedRule | undefined,
  snapshot: MeshSnapshot,
): { [key: string]: import('@bufbuild/protobuf').JsonValue } {
  const { service } = state
  return {
    ...(rule
      ? { config: `/apis/networking.${snapshot.settings.names.domain}/v1alpha3/namespaces/${rule.namespace}/destination-rule/${rule.name}` }
      : {}),
    ...(subset ? { subset: subset.name } : {}),
    default_original_port: port.number,
    services: [{ host: service.hostname, name: service.name, namespace: service.namespace }],
  }
}

/**
 * Returns the name of a cluster in statistics from a pattern with placeholders such as `%SERVICE%`; empty for an empty pattern, which means
 * the default name.
 */
export function statName(pattern: string, service: Service, port: ServicePort, subset: Subset | undefined): string {
  if (pattern === '') return ''
  const short = service.hostname.split('.').slice(0, 2).join('.')
  return pattern
    .replaceAll('%SERVICE%', short)
    .replaceAll('%SERVICE_FQDN%', service.hostname)
    .replaceAll('%SERVICE_PORT%', String(port.number))
    .replaceAll('%SERVICE_PORT_NAME%', port.name)
    .replaceAll('%SUBSET_NAME%', subset?.name ?? '')
}

/** Returns the clusters that belong to no service: the one that drops traffic, and for sidecars the one that passes traffic through. */
export function commonClusters(snapshot: MeshSnapshot, traits: Traits): Draft<Cluster>[] {
  const objects = () => []
  return [
    { name: blackHole, objects, make: () => blackHoleCluster(snapshot) },
    ...(traits.type === 'sidecar' ? [{ name: passthrough, objects, make: () => passthroughCluster(snapshot) }] : []),
  ]
}

function blackHoleCluster(snapshot: MeshSnapshot): Cluster {
  return create(ClusterSchema, {
    name: blackHole,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    connectTimeout: durationOf(snapshot.mesh.connectTimeout),
    lbPolicy: Cluster_LbPolicy.ROUND_ROBIN,
  })
}

/** Returns the cluster that forwards connections to their original destination. */
function passthroughCluster(snapshot: MeshSnapshot): Cluster {
  const cluster: ClusterInit = {
    name: passthrough,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST },
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
    typedExtensionProtocolOptions: {
      [httpOptions]: pack(HttpProtocolOptionsSchema, {
        upstreamProtocolOptions: {
          case: 'useDownstreamProtocolConfig',
          value: { httpProtocolOptions: {}, http2ProtocolOptions: { maxConcurrentStreams } },
        },
      }),
    },
  }
  applyConnectionPool(cluster, undefined, snapshot)
  return create(ClusterSchema, cluster)
}
