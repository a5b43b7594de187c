/** Network and HTTP filters of listeners (docs/resources.md, L12 and L18). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Protocol } from '../../../protocols/data.ts'
import { MySQLProxySchema } from '../../../protocols/gen/contrib/mysql_proxy_pb.js'
import { HttpProtocolOptions_HeadersWithUnderscoresAction } from '../../../protocols/gen/envoy/config/core/v3/protocol_pb.js'
import type { FilterSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import type { RouteConfiguration } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { CorsSchema } from '../../../protocols/gen/envoy/extensions/filters/http/cors/v3/cors_pb.js'
import { HTTPFaultSchema } from '../../../protocols/gen/envoy/extensions/filters/http/fault/v3/fault_pb.js'
import { FilterConfigSchema as GrpcStatsSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.js'
import { GrpcWebSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.js'
import { RouterSchema } from '../../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import { HttpInspectorSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.js'
import { OriginalDstSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.js'
import { OriginalSrcSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.js'
import { TlsInspectorSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.js'
import {
  HttpConnectionManager_ForwardClientCertDetails as ForwardClientCert,
  HttpConnectionManagerSchema,
  type HttpFilterSchema,
} from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { MongoProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.js'
import { RedisProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.js'
import { TcpProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js'
import type { RouteActionSchema } from '../../../protocols/gen/envoy/extensions/filters/network/thrift_proxy/v3/route_pb.js'
import { ThriftProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/thrift_proxy/v3/thrift_proxy_pb.js'
import { HeaderMutationSchema as EarlyHeaderMutationSchema } from '../../../protocols/gen/envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation_pb.js'
import { decodesSlashes, mergesSlashes } from '../../config/path-patterns.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf, overAds, pack } from '../message.ts'
import { type GuardedHeaders, noGuardedHeaders } from '../security/guarded-headers.ts'
import type { PolicyFilters } from '../security/policy-filters.ts'
import { topologyOf } from '../security/trusted-proxies.ts'
import type { Traits } from '../traits.ts'
import { accessLogs } from './access-log.ts'
import { customTags } from './custom-tags.ts'
import type { TcpTarget } from './tcp-targets.ts'

/** The initial fields of a network filter. */
export type Filter = MessageInitShape<typeof FilterSchema>
type HttpFilter = MessageInitShape<typeof HttpFilterSchema>

/** Parameters of an HTTP connection manager. */
export interface HttpOptions {
  readonly side: 'outbound' | 'inbound' | 'gateway'
  readonly statPrefix: string
  /** The name of a route configuration to fetch, or an inlined route configuration. */
  readonly routes: string | RouteConfiguration
  /** Protocols of the services behind it, some of which need filters of their own. */
  readonly protocols: ReadonlySet<Protocol>
  /** The enforcement of policies: filters that precede all others, and the headers that are removed from requests before any filter. */
  readonly policies?: Pick<PolicyFilters, 'http' | 'headers'> | undefined
}

/** Whether HTTP/1.0 requests are accepted. */
export const acceptsHttp10 = ({ settings }: MeshSnapshot, { http10 }: Traits): boolean => http10 || settings.features.PILOT_HTTP10

/** Returns an `envoy.filters.network.http_connection_manager`. */
export function httpConnectionManager(options: HttpOptions, snapshot: MeshSnapshot, traits: Traits): Filter {
  const { mesh } = snapshot
  const { features } = snapshot.settings
  const gateway = options.side === 'gateway'
  const topology = topologyOf(traits, mesh)
  const hops = topology.numTrustedProxies ?? 0
  // A workload's own requests are normalized less, since the receiver interprets their paths. Where policies are enforced, the safe form is
  // the default.
  const asked = mesh.pathNormalization.normalization ?? 'DEFAULT'
  const normalization = asked === 'DEFAULT' && options.side === 'outbound' ? 'BASE' : asked
  const headers = options.policies?.headers ?? noGuardedHeaders
  const http10 = acceptsHttp10(snapshot, traits)
  const manager = pack(HttpConnectionManagerSchema, {
    statPrefix: options.statPrefix,
    routeSpecifier:
      typeof options.routes === 'string'
        ? {
            case: 'rds',
            value: {
              routeConfigName: options.routes,
              configSource: { ...overAds, initialFetchTimeout: durationOf(features.PILOT_INITIAL_FETCH_TIMEOUT) },
            },
          }
        : { case: 'routeConfig', value: options.routes },
    httpFilters: [...(options.policies?.http ?? []), ...httpFilters(options.protocols)],
    accessLog: accessLogs(mesh),
    streamIdleTimeout: durationOf(0),
    ...protocolOptions(headers, traits),
    ...(headers.removed.length > 0 ? { earlyHeaderMutationExtensions: [removal(headers.removed)] } : {}),
    upgradeConfigs: [{ upgradeType: 'websocket' }],
    // A host with a trailing dot is the same host without it, and is sent without it.
    ...(options.side === 'outbound' ? { stripTrailingHostDot: true } : {}),
    normalizePath: normalization !== 'NONE',
    mergeSlashes: mergesSlashes(normalization),
    ...(decodesSlashes(normalization) ? { pathWithEscapedSlashesAction: 4 } : {}),
    ...(http10 ? { httpProtocolOptions: { acceptHttp10: true, enableTrailers: false } } : {}),
    ...(options.side === 'inbound'
      ? {
          serverName: 'istio-envoy',
          forwardClientCertDetails: ForwardClientCert.APPEND_FORWARD,
          setCurrentClientCertDetails: { subject: true, uri: true, dns: true },
        }
      : {}),
    ...(gateway
      ? {
          useRemoteAddress: true,
          xffNumTrustedHops: hops,
          forwardClientCertDetails:
            ForwardClientCert[topology.forwardClientCertDetails as keyof typeof ForwardClientCert] ?? ForwardClientCert.SANITIZE_SET,
          setCurrentClientCertDetails: { subject: true, uri: true, dns: true, cert: true },
        }
      : { useRemoteAddress: options.side === 'outbound' && features.PILOT_SIDECAR_USE_REMOTE_ADDRESS }),
    ...(mesh.enableTracing ? { tracing: tracingOf(snapshot, traits) } : {}),
  })
  return { name: 'envoy.filters.network.http_connection_manager', configType: { case: 'typedConfig', value: manager } }
}

function protocolOptions({ dropsUnderscores }: GuardedHeaders, { idleTimeout }: Traits) {
  if (!dropsUnderscores && idleTimeout === undefined) return {}
  return {
    commonHttpProtocolOptions: {
      ...(idleTimeout !== undefined ? { idleTimeout: durationOf(idleTimeout) } : {}),
      ...(dropsUnderscores ? { headersWithUnderscoresAction: HttpProtocolOptions_HeadersWithUnderscoresAction.DROP_HEADER } : {}),
    },
  }
}

/** Returns an extension that removes headers before any filter, route or access log sees a request. */
const removal = (names: readonly string[]) => ({
  name: 'envoy.http.early_header_mutation.header_mutation',
  typedConfig: pack(EarlyHeaderMutationSchema, { mutations: names.map((name) => ({ action: { case: 'remove' as const, value: name } })) }),
})

function tracingOf(snapshot: MeshSnapshot, traits: Traits) {
  const { features } = snapshot.settings
  const sampling = traits.proxyConfig.tracing?.sampling ?? snapshot.mesh.defaultConfig.tracing?.sampling ?? features.PILOT_TRACE_SAMPLING
  const maxPathTagLength = traits.proxyConfig.tracing?.maxPathTagLength ?? snapshot.mesh.defaultConfig.tracing?.maxPathTagLength
  return {
    clientSampling: { value: 100 },
    randomSampling: { value: Math.min(100, Math.max(0, sampling)) },
    overallSampling: { value: 100 },
    customTags: customTags(snapshot, traits),
    ...(maxPathTagLength !== undefined ? { maxPathTagLength } : {}),
  }
}

function httpFilters(protocols: ReadonlySet<Protocol>): HttpFilter[] {
  return [
    ...(protocols.has('grpc-web') ? [httpFilter('envoy.filters.http.grpc_web', pack(GrpcWebSchema, {}))] : []),
    ...(protocols.has('grpc') || protocols.has('grpc-web')
      ? [
          httpFilter(
            'envoy.filters.http.grpc_stats',
            pack(GrpcStatsSchema, { emitFilterState: true, perMethodStatSpecifier: { case: 'statsForAllMethods', value: { value: false } } }),
          ),
        ]
      : []),
    httpFilter('envoy.filters.http.cors', pack(CorsSchema, {})),
    httpFilter('envoy.filters.http.fault', pack(HTTPFaultSchema, {})),
    httpFilter('envoy.filters.http.router', pack(RouterSchema, {})),
  ]
}

const httpFilter = (name: string, config: ReturnType<typeof pack>): HttpFilter => ({ name, configType: { case: 'typedConfig', value: config } })

/**
 * Returns the network filters that proxy a connection to clusters: `tcp_proxy`, preceded by the filter of the protocol if there is one, or
 * the filter that routes single requests of the protocol.
 */
export function tcpFilters(
  statPrefix: string,
  targets: readonly TcpTarget[],
  protocol: Protocol | undefined,
  snapshot: MeshSnapshot,
  traits: Traits,
): Filter[] {
  const weighted = targets.filter((target) => targets.length === 1 || target.weight > 0)
  const routing = requestRouting(statPrefix, weighted, protocol, snapshot)
  if (routing) return [routing]
  const [only] = weighted
  const clusterSpecifier =
    weighted.length === 1 && only
      ? { case: 'cluster' as const, value: only.cluster }
      : { case: 'weightedClusters' as const, value: { clusters: weighted.map((target) => ({ name: target.cluster, weight: target.weight })) } }
  const said = weighted.flatMap(({ settings }) => settings ?? [])
  const idleTimeout = said.find((settings) => settings.idleTimeout !== undefined)?.idleTimeout ?? traits.idleTimeout
  const maxConnectionDuration = said.find((settings) => settings.maxConnectionDuration !== undefined)?.maxConnectionDuration
  const proxy = pack(TcpProxySchema, {
    statPrefix,
    clusterSpecifier,
    accessLog: accessLogs(snapshot.mesh),
    ...(idleTimeout !== undefined ? { idleTimeout: durationOf(idleTimeout) } : {}),
    ...(maxConnectionDuration !== undefined ? { maxDownstreamConnectionDuration: durationOf(maxConnectionDuration) } : {}),
    ...(said.some(({ hashesSource }) => hashesSource) ? { hashPolicy: [{ policySpecifier: { case: 'sourceIp' as const, value: {} } }] } : {}),
  })
  const filter = (name: string, value: ReturnType<typeof pack>): Filter => ({ name, configType: { case: 'typedConfig', value } })
  const filters = [filter('envoy.filters.network.tcp_proxy', proxy)]
  if (protocol === 'mongo') filters.unshift(filter('envoy.filters.network.mongo_proxy', pack(MongoProxySchema, { statPrefix })))
  // A proxy without the filter would refuse the whole listener.
  if (protocol === 'mysql' && snapshot.settings.features.PILOT_ENABLE_MYSQL_FILTER && traits.readsMysql)
    filters.unshift(filter('envoy.filters.network.mysql_proxy', pack(MySQLProxySchema, { statPrefix })))
  return filters
}

/** The timeout of a command at a Redis server, in milliseconds. */
const redisCommandMs = 5000

/**
 * Returns the filter that routes each request of a connection to the clusters. Undefined for protocols without one, and for commands of
 * Redis with several clusters, among which `redis_proxy` cannot distribute by weight.
 */
function requestRouting(
  statPrefix: string,
  targets: readonly TcpTarget[],
  protocol: Protocol | undefined,
  { settings: { features } }: MeshSnapshot,
): Filter | undefined {
  const filter = (name: string, value: ReturnType<typeof pack>): Filter => ({ name, configType: { case: 'typedConfig', value } })
  const [only, ...others] = targets
  if (!only) return undefined
  if (protocol === 'redis' && features.PILOT_ENABLE_REDIS_FILTER && others.length === 0)
    return filter(
      'envoy.filters.network.redis_proxy',
      pack(RedisProxySchema, {
        statPrefix,
        latencyInMicros: true,
        settings: { opTimeout: durationOf(redisCommandMs) },
        prefixRoutes: { catchAllRoute: { cluster: only.cluster } },
      }),
    )
  if (protocol !== 'thrift' || !features.PILOT_ENABLE_THRIFT_FILTER) return undefined
  const route: MessageInitShape<typeof RouteActionSchema> = {
    clusterSpecifier:
      others.length === 0
        ? { case: 'cluster', value: only.cluster }
        : { case: 'weightedClusters', value: { clusters: targets.map(({ cluster, weight }) => ({ name: cluster, weight })) } },
  }
  // An empty method name matches every request.
  const routeConfig = { name: statPrefix, routes: [{ match: { matchSpecifier: { case: 'methodName' as const, value: '' } }, route }] }
  return filter('envoy.filters.network.thrift_proxy', pack(ThriftProxySchema, { statPrefix, routeConfig }))
}

const listenerFilter = (name: string, config: ReturnType<typeof pack>) => ({ name, configType: { case: 'typedConfig' as const, value: config } })

/** Detects TLS and its SNI. */
export const tlsInspector = () => listenerFilter('envoy.filters.listener.tls_inspector', pack(TlsInspectorSchema, {}))
/** Detects HTTP. */
export const httpInspector = () => listenerFilter('envoy.filters.listener.http_inspector', pack(HttpInspectorSchema, {}))
/** Restores the original destination of a redirected connection. */
export const originalDst = () => listenerFilter('envoy.filters.listener.original_dst', pack(OriginalDstSchema, {}))
/** Keeps the client's address as source address towards the workload (TPROXY). */
export const originalSrc = () => listenerFilter('envoy.filters.listener.original_src', pack(OriginalSrcSchema, { mark: 1337 }))
