/** Translates policies of DestinationRules to fields of `envoy.config.cluster.v3.Cluster` (docs/resources.md, C5 to C9). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Protocol, Service, TrafficDistribution } from '../../../protocols/data.ts'
import {
  Cluster_DiscoveryType,
  Cluster_LbPolicy,
  Cluster_RingHashLbConfig_HashFunction,
  type Cluster_SlowStartConfigSchema,
  type ClusterSchema,
} from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { Http2ProtocolOptionsSchema, HttpProtocolOptionsSchema } from '../../../protocols/gen/envoy/config/core/v3/protocol_pb.js'
import { ProxyProtocolConfig_Version } from '../../../protocols/gen/envoy/config/core/v3/proxy_protocol_pb.js'
import { ProxyProtocolUpstreamTransportSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.js'
import { RawBufferSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.js'
import { UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { PortPolicy, TlsSettings, TrafficPolicy } from '../../config/kinds/destination-rule.ts'
import type { MergedRule, Subset } from '../../snapshot/destination-rules.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf, pack } from '../message.ts'
import { certificateName } from '../secrets/secret-names.ts'
import { authoritiesContext, gatewaySecret } from '../security/credentials.ts'
import { fileCertificates } from '../security/file-certificates.ts'
import type { Traits } from '../traits.ts'

/** The initial fields of a cluster. */
export type ClusterInit = MessageInitShape<typeof ClusterSchema>

/** The effective settings for one port of a service or subset. */
export type PolicyInForce = Pick<PortPolicy, 'connectionPool' | 'loadBalancer' | 'outlierDetection' | 'tls'> &
  Pick<TrafficPolicy, 'proxyProtocol' | 'retryBudget'> & {
    /** The preference of the service, where no rule has locality settings (docs/resources.md, E10). */
    readonly distribution?: TrafficDistribution
  }

type ConnectionPool = NonNullable<PolicyInForce['connectionPool']>

type LoadBalancer = NonNullable<PolicyInForce['loadBalancer']>

const largest = 4_294_967_295

/** Envoy requires a runtime key with each such value. */
const aggressionKey = 'upstream.warmup_aggression'

/**
 * Returns the effective policy of a port (docs/resources.md, C5). Settings for the port in a subset replace all others that ports can have;
 * other settings of a subset override those of the rule field by field.
 */
export function policyFor(rule: MergedRule | undefined, subset: Subset | undefined, port: number): PolicyInForce {
  const own = levelOf(subset?.policy, port)
  const top = settingsOf(levelOf(rule?.policy, port) ?? rule?.policy)
  if (own) return { ...settingsOf(own), proxyProtocol: top.proxyProtocol, retryBudget: top.retryBudget }
  return subset?.policy ? { ...top, ...defined(settingsOf(subset.policy)) } : top
}

/** Returns the effective policy of a port of a service, with the preference that the service has for endpoints near its callers. */
export function servicePolicy({ distribution }: Service, rule: MergedRule | undefined, subset: Subset | undefined, port: number): PolicyInForce {
  const policy = policyFor(rule, subset, port)
  return distribution === undefined || policy.loadBalancer?.localityLbSetting ? policy : { ...policy, distribution }
}

const levelOf = (policy: TrafficPolicy | undefined, port: number): PortPolicy | undefined =>
  policy?.portLevelSettings?.find((entry) => entry.port.number === port)

const settingsOf = ({ connectionPool, loadBalancer, outlierDetection, tls, proxyProtocol, retryBudget }: PolicyInForce = {}): PolicyInForce => ({
  connectionPool,
  loadBalancer,
  outlierDetection,
  tls,
  proxyProtocol,
  retryBudget,
})

const defined = (policy: PolicyInForce): PolicyInForce => Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined))

/** Sets connection pool, outlier detection and load balancer. `protocol` is that of the port, for clusters of services. */
export function applyPolicy(cluster: ClusterInit, policy: PolicyInForce, snapshot: MeshSnapshot, protocol?: Protocol): void {
  applyConnectionPool(cluster, policy.connectionPool, snapshot, policy.retryBudget)
  applyOutlierDetection(cluster, policy)
  // Commands of Redis are routed by their keys, which the load balancer has to distribute among the endpoints.
  if (protocol === 'redis' && snapshot.settings.features.PILOT_ENABLE_REDIS_FILTER) cluster.lbPolicy = Cluster_LbPolicy.MAGLEV
  else applyLoadBalancer(cluster, policy)
}

/**
 * Sets connect timeout, limits and keepalive. Timeout and keepalive default to those of the mesh, limits to the largest value
 * (docs/resources.md, C6).
 */
export function applyConnectionPool(
  cluster: ClusterInit,
  { tcp, http }: ConnectionPool = {},
  snapshot: MeshSnapshot,
  retryBudget?: PolicyInForce['retryBudget'],
): void {
  cluster.connectTimeout = durationOf(tcp?.connectTimeout ?? snapshot.mesh.connectTimeout)
  cluster.circuitBreakers = {
    thresholds: [
      {
        maxConnections: tcp?.maxConnections ?? largest,
        maxPendingRequests: http?.http1MaxPendingRequests ?? largest,
        maxRequests: http?.http2MaxRequests ?? largest,
        maxRetries: http?.maxRetries ?? largest,
        ...(retryBudget
          ? { retryBudget: { budgetPercent: { value: retryBudget.percent ?? 20 }, minRetryConcurrency: retryBudget.minRetryConcurrency || 3 } }
          : {}),
        trackRemaining: true,
      },
    ],
  }
  const keepalive = { ...snapshot.mesh.tcpKeepalive, ...tcp?.tcpKeepalive }
  if (keepalive.probes !== undefined || keepalive.time !== undefined || keepalive.interval !== undefined) {
    cluster.upstreamConnectionOptions = {
      tcpKeepalive: {
        ...(keepalive.probes !== undefined ? { keepaliveProbes: keepalive.probes } : {}),
        ...(keepalive.time !== undefined ? { keepaliveTime: Math.round(keepalive.time / 1000) } : {}),
        ...(keepalive.interval !== undefined ? { keepaliveInterval: Math.round(keepalive.interval / 1000) } : {}),
      },
    }
  }
}

/** Returns the settings of a connection pool that apply to both HTTP/1.1 and HTTP/2; empty if none of them is set. */
export function commonHttpOptions({ tcp, http }: ConnectionPool = {}): MessageInitShape<typeof HttpProtocolOptionsSchema> {
  const idleTimeout = http?.idleTimeout ?? tcp?.idleTimeout
  return {
    ...(idleTimeout !== undefined ? { idleTimeout: durationOf(idleTimeout) } : {}),
    ...(http?.maxRequestsPerConnection ? { maxRequestsPerConnection: http.maxRequestsPerConnection } : {}),
    ...(tcp?.maxConnectionDuration !== undefined ? { maxConnectionDuration: durationOf(tcp.maxConnectionDuration) } : {}),
  }
}

/** Returns the settings of a connection pool that apply to HTTP/2: the limit of concurrent streams, and PING frames. */
export function http2Options({ http }: ConnectionPool = {}): MessageInitShape<typeof Http2ProtocolOptionsSchema> {
  const { maxConcurrentStreams, http2KeepAlive } = http ?? {}
  return {
    ...(maxConcurrentStreams !== undefined ? { maxConcurrentStreams } : {}),
    ...(http2KeepAlive
      ? { connectionKeepalive: { interval: durationOf(http2KeepAlive.interval), timeout: durationOf(http2KeepAlive.timeout) } }
      : {}),
  }
}

function applyOutlierDetection(cluster: ClusterInit, policy: PolicyInForce): void {
  const outlier = policy.outlierDetection
  // With Envoy's default, traffic would go to ejected hosts once half of them are ejected.
  cluster.commonLbConfig = { healthyPanicThreshold: { value: outlier?.minHealthPercent ?? 0 } }
  if (!outlier) return
  const consecutive5xx = outlier.consecutive5xxErrors ?? outlier.consecutiveErrors
  cluster.outlierDetection = {
    enforcingSuccessRate: 0,
    ...(consecutive5xx !== undefined ? { consecutive5xx, enforcingConsecutive5xx: consecutive5xx > 0 ? 100 : 0 } : {}),
    ...(outlier.consecutiveGatewayErrors !== undefined
      ? {
          consecutiveGatewayFailure: outlier.consecutiveGatewayErrors,
          enforcingConsecutiveGatewayFailure: outlier.consecutiveGatewayErrors > 0 ? 100 : 0,
        }
      : {}),
    ...(outlier.interval !== undefined ? { interval: durationOf(outlier.interval) } : {}),
    ...(outlier.baseEjectionTime !== undefined ? { baseEjectionTime: durationOf(outlier.baseEjectionTime) } : {}),
    ...(outlier.baseEjectionTime !== undefined && outlier.baseEjectionTime > 300_000
      ? { maxEjectionTime: durationOf(outlier.baseEjectionTime) }
      : {}),
    ...(outlier.maxEjectionPercent !== undefined ? { maxEjectionPercent: outlier.maxEjectionPercent } : {}),
    ...(outlier.splitExternalLocalOriginErrors
      ? {
          splitExternalLocalOriginErrors: true,
          enforcingLocalOriginSuccessRate: 0,
          consecutiveLocalOriginFailure: outlier.consecutiveLocalOriginFailures ?? 5,
          enforcingConsecutiveLocalOriginFailure: 100,
        }
      : {}),
  }
}

function applyLoadBalancer(cluster: ClusterInit, policy: PolicyInForce): void {
  const balancer = policy.loadBalancer
  const slowStartConfig = balancer && slowStart(balancer)
  const hash = balancer?.consistentHash
  if (hash?.maglev) {
    cluster.lbPolicy = Cluster_LbPolicy.MAGLEV
    if (hash.maglev.tableSize !== undefined) cluster.lbConfig = { case: 'maglevLbConfig', value: { tableSize: BigInt(hash.maglev.tableSize) } }
  } else if (hash) {
    cluster.lbPolicy = Cluster_LbPolicy.RING_HASH
    const size = hash.ringHash?.minimumRingSize ?? hash.minimumRingSize ?? 1024
    cluster.lbConfig = {
      case: 'ringHashLbConfig',
      value: { minimumRingSize: BigInt(size === 0 ? 1024 : size), hashFunction: Cluster_RingHashLbConfig_HashFunction.XX_HASH },
    }
  } else if (balancer?.simple === 'LEAST_CONN' || balancer?.simple === 'LEAST_REQUEST') {
    cluster.lbPolicy = Cluster_LbPolicy.LEAST_REQUEST
    if (slowStartConfig) cluster.lbConfig = { case: 'leastRequestLbConfig', value: { slowStartConfig } }
  } else if (balancer?.simple === 'RANDOM') {
    cluster.lbPolicy = Cluster_LbPolicy.RANDOM
  } else if (balancer?.simple === 'PASSTHROUGH') {
    cluster.lbPolicy = Cluster_LbPolicy.CLUSTER_PROVIDED
    cluster.clusterDiscoveryType = { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST }
    cluster.edsClusterConfig = undefined
    cluster.loadAssignment = undefined
  } else {
    cluster.lbPolicy = Cluster_LbPolicy.ROUND_ROBIN
    if (slowStartConfig) cluster.lbConfig = { case: 'roundRobinLbConfig', value: { slowStartConfig } }
  }
}

/**
 * Returns the ramp-up of the weight of new endpoints; undefined if none is configured. Envoy's default for `aggression` is 1, a linear
 * ramp.
 */
function slowStart({ warmup, warmupDurationSecs }: LoadBalancer): MessageInitShape<typeof Cluster_SlowStartConfigSchema> | undefined {
  const window = warmup?.duration ?? warmupDurationSecs
  if (window === undefined) return undefined
  return {
    slowStartWindow: durationOf(window),
    ...(warmup?.aggression !== undefined ? { aggression: { defaultValue: warmup.aggression, runtimeKey: aggressionKey } } : {}),
    ...(warmup?.minimumPercent !== undefined ? { minWeightPercent: { value: warmup.minimumPercent } } : {}),
  }
}

type Socket = NonNullable<ClusterInit['transportSocket']>

/** Returns the socket of connections without TLS. */
export const plainSocket = (): Socket => ({
  name: 'envoy.transport_sockets.raw_buffer',
  configType: { case: 'typedConfig', value: pack(RawBufferSchema, {}) },
})

/**
 * Makes every connection begin with a PROXY protocol header, before TLS (`envoy.extensions.transport_sockets.proxy_protocol.v3`). Call this
 * after the transport sockets are set, since it wraps them.
 */
export function applyProxyProtocol(cluster: ClusterInit, { proxyProtocol }: PolicyInForce): void {
  if (!proxyProtocol) return
  const version = proxyProtocol.version === 'V2' ? ProxyProtocolConfig_Version.V2 : ProxyProtocolConfig_Version.V1
  const wrapped = (transportSocket: Socket): Socket => ({
    name: 'envoy.transport_sockets.upstream_proxy_protocol',
    configType: { case: 'typedConfig', value: pack(ProxyProtocolUpstreamTransportSchema, { config: { version }, transportSocket }) },
  })
  const matches = cluster.transportSocketMatches ?? []
  for (const match of matches) match.transportSocket = wrapped(match.transportSocket ?? plainSocket())
  if (matches.length === 0) cluster.transportSocket = wrapped(cluster.transportSocket ?? plainSocket())
}

/**
 * Returns the transport socket for TLS settings other than mesh mutual TLS: with certificates from files, or at routers from a
 * `credentialName`.
 */
export function tlsSocket(tls: TlsSettings, http2: boolean, traits: Traits, snapshot: MeshSnapshot): ClusterInit['transportSocket'] {
  const byName = traits.type === 'router' && tls.credentialName ? tls.credentialName : undefined
  const common = {
    alpnProtocols: http2 ? ['h2'] : [],
    ...(byName === undefined ? filesContext(tls, traits, snapshot) : credentialContext(byName, tls, snapshot)),
  }
  return {
    name: 'envoy.transport_sockets.tls',
    configType: { case: 'typedConfig', value: pack(UpstreamTlsContextSchema, { sni: tls.sni ?? '', commonTlsContext: common }) },
  }
}

/** Returns the files of TLS settings; those that the proxy's metadata names come first where `PILOT_ALLOW_METADATA_CERTS_DR_MUTUAL_TLS` is set. */
function filesOf(tls: TlsSettings, { certificates: { client } }: Traits, { settings }: MeshSnapshot) {
  if (tls.mode === 'MUTUAL' && client && settings.features.PILOT_ALLOW_METADATA_CERTS_DR_MUTUAL_TLS)
    return { clientCertificate: client.chain, privateKey: client.key, caCertificates: client.root }
  return tls
}

function filesContext(tls: TlsSettings, traits: Traits, snapshot: MeshSnapshot) {
  const { clientCertificate, privateKey, caCertificates } = filesOf(tls, traits, snapshot)
  return fileCertificates(
    {
      pairs: tls.mode === 'MUTUAL' && clientCertificate && privateKey ? [{ chain: clientCertificate, key: privateKey }] : [],
      authorities: (!tls.insecureSkipVerify && caCertificates) || undefined,
      revocations: tls.caCrl || undefined,
      checks: { matchTypedSubjectAltNames: subjectNames(tls) },
    },
    traits.certificates,
  )
}

function credentialContext(credentialName: string, tls: TlsSettings, snapshot: MeshSnapshot) {
  return {
    ...(tls.mode === 'MUTUAL' ? { tlsCertificateSdsSecretConfigs: [gatewaySecret(certificateName(credentialName), snapshot)] } : {}),
    ...(tls.insecureSkipVerify ? {} : authoritiesContext(credentialName, { matchTypedSubjectAltNames: subjectNames(tls) }, snapshot)),
  }
}

const subjectNames = (tls: TlsSettings) =>
  (tls.subjectAltNames ?? []).map((name) => ({ sanType: name.includes('://') ? 3 : 2, matcher: exact(name) }))
const exact = (value: string) => ({ matchPattern: { case: 'exact' as const, value } })
