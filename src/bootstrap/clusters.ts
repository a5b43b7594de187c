/**
 * The static clusters of a bootstrap (envoy.config.cluster.v3.Cluster): the peers that the proxy needs before it receives configuration
 * (docs/agent.md, B13).
 */
import type { ClusterJson } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { AddressJson } from '../../protocols/gen/envoy/config/core/v3/address_pb.js'
import type { TransportSocketJson } from '../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type { CommonTlsContextJson } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import { relaySocket } from '../agent/relay-settings.ts'
import { secretSocket } from '../agent/settings.ts'
import { agentSecret, type ClientFiles, peerTls, type TlsPeer, tlsSocket } from './peer-tls.ts'
import { type ProxyConfig, splitAddress } from './proxy-config.ts'
import type { BootstrapSettings, DiscoveryPeer } from './settings.ts'
import { tracerPeer } from './tracer.ts'
import { type DnsClusterJson, typed } from './typed.ts'

/** The system's roots, for a discovery service without roots of its own. */
const systemRoots = '/etc/ssl/certs/ca-certificates.crt'

const socket = (address: string, portValue: number): AddressJson => ({ socketAddress: { protocol: 'TCP', address, portValue } })
const pipe = (path: string): AddressJson => ({ pipe: { path } })

const endpoints = (clusterName: string, address: AddressJson): Pick<ClusterJson, 'loadAssignment'> => ({
  loadAssignment: { clusterName, endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] },
})

/** HTTP/2 by prior knowledge. `streams` is the maximum number of streams per connection; 0 means no limit. */
const http2 = (streams = 0): Pick<ClusterJson, 'typedExtensionProtocolOptions'> => ({
  typedExtensionProtocolOptions: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed('envoy.extensions.upstreams.http.v3.HttpProtocolOptions', {
      ...(streams > 0 && { commonHttpProtocolOptions: { maxRequestsPerConnection: streams } }),
      explicitHttpConfig: { http2ProtocolOptions: {} },
    }),
  },
})

/** Returns all static clusters. */
export function staticClusters(settings: BootstrapSettings): ClusterJson[] {
  const { config, localhost } = settings
  return [
    local('prometheus_stats', socket(localhost, config.proxyAdminPort)),
    ...(config.statusPort > 0 ? [local('agent', socket(localhost, config.statusPort))] : []),
    { name: 'sds-grpc', type: 'STATIC', connectTimeout: '1s', ...http2(), ...endpoints('sds-grpc', pipe(secretSocket)) },
    ...(settings.callCredentials ? [] : [discovery(settings)]),
    ...tracers(settings),
    ...reports(settings, 'envoy_metrics_service', 'envoyMetricsService'),
    ...reports(settings, 'envoy_accesslog_service', 'envoyAccessLogService'),
  ]
}

const local = (name: string, address: AddressJson): ClusterJson => ({
  name,
  type: 'STATIC',
  connectTimeout: '0.250s',
  lbPolicy: 'ROUND_ROBIN',
  ...endpoints(name, address),
})

/** The initialization of the cluster manager does not wait for the DNS resolution of this cluster. */
const optional = { waitForWarmOnInit: false } as const

/** A cluster whose host name is resolved periodically. An IP address needs no resolution. */
function resolved(name: string, address: string, { dnsLookupFamily }: BootstrapSettings, options: DnsClusterJson = {}): ClusterJson {
  const { host, port } = splitAddress(address) ?? { host: address, port: 0 }
  return {
    name,
    clusterType: { name: 'envoy.cluster.dns', typedConfig: typed('envoy.extensions.clusters.dns.v3.DnsCluster', { dnsLookupFamily, ...options }) },
    connectTimeout: '1s',
    lbPolicy: 'ROUND_ROBIN',
    ...endpoints(name, socket(host, port)),
  }
}

/** Upstream connection options with TCP keepalive. */
export const keepalive = ({ probes, time, interval }: NonNullable<NonNullable<ProxyConfig['envoyMetricsService']>['tcpKeepalive']>): ClusterJson => ({
  upstreamConnectionOptions: {
    tcpKeepalive: {
      ...(probes !== undefined && { keepaliveProbes: probes }),
      ...(time !== undefined && { keepaliveTime: Math.round(time / 1000) }),
      ...(interval !== undefined && { keepaliveInterval: Math.round(interval / 1000) }),
    },
  },
})

const most = { maxConnections: 100_000, maxPendingRequests: 100_000, maxRequests: 100_000 }

function discovery(settings: BootstrapSettings): ClusterJson {
  const name = 'xds-grpc'
  const where: ClusterJson = settings.isViaAgent
    ? { name, type: 'STATIC', ...endpoints(name, pipe(relaySocket)) }
    : {
        ...resolved(name, settings.config.discoveryAddress, settings, { respectDnsTtl: true }),
        ...transport(!settings.discovery.address.isPlain && discoveryTls(settings.discovery)),
      }
  return {
    ...where,
    connectTimeout: '1s',
    lbPolicy: 'ROUND_ROBIN',
    circuitBreakers: {
      thresholds: [
        { priority: 'DEFAULT', ...most },
        { priority: 'HIGH', ...most },
      ],
    },
    ...keepalive({ time: 300_000 }),
    ...http2(1),
  }
}

const transport = (transportSocket: TransportSocketJson | false | undefined): ClusterJson => (transportSocket ? { transportSocket } : {})

function discoveryTls({ address: { serverName, host }, roots, pair }: DiscoveryPeer): TransportSocketJson {
  const client: CommonTlsContextJson = pair
    ? { tlsCertificates: [{ certificateChain: { filename: pair.chain }, privateKey: { filename: pair.key } }] }
    : { tlsCertificateSdsSecretConfigs: [agentSecret('default')] }
  const context = { ...client, alpnProtocols: ['h2'], validationContext: { trustedCa: { filename: roots ?? systemRoots } } }
  return tlsSocket(context, host, [serverName])
}

function tracers(settings: BootstrapSettings): ClusterJson[] {
  const peer = tracerPeer(settings.config)
  if (!peer) return []
  const tls: TlsPeer = { field: 'tracing', serverName: 'tracer', isHttp2: false }
  return [
    {
      ...resolved(peer.cluster, peer.address, settings, peer.cluster === 'zipkin' ? { dnsRefreshRate: '30s' } : {}),
      ...optional,
      ...transport(peerTls(settings.config.tracing.tlsSettings, tls, clientFiles(settings))),
    },
  ]
}

function reports(settings: BootstrapSettings, name: string, field: 'envoyMetricsService' | 'envoyAccessLogService'): ClusterJson[] {
  const { address, tlsSettings, tcpKeepalive } = settings.config[field] ?? {}
  if (!address) return []
  return [
    {
      ...resolved(name, address, settings),
      ...optional,
      ...http2(),
      ...(tcpKeepalive && keepalive(tcpKeepalive)),
      ...transport(peerTls(tlsSettings, { field, serverName: name, isHttp2: true }, clientFiles(settings))),
    },
  ]
}

/** The files of a client certificate that the node metadata names. */
export function clientFiles({ node: { metadata } }: BootstrapSettings): ClientFiles {
  const file = (name: string) => (typeof metadata[name] === 'string' ? metadata[name] : undefined)
  return {
    TLS_CLIENT_KEY: file('TLS_CLIENT_KEY'),
    TLS_CLIENT_CERT_CHAIN: file('TLS_CLIENT_CERT_CHAIN'),
    TLS_CLIENT_ROOT_CERT: file('TLS_CLIENT_ROOT_CERT'),
  }
}
