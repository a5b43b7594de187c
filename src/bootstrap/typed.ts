/** `google.protobuf.Any` in JSON, with the fields of the packed message checked by the compiler. */

import type { MetricsServiceConfigJson } from '../../protocols/gen/envoy/config/metrics/v3/metrics_service_pb.js'
import type { StatsdSinkJson } from '../../protocols/gen/envoy/config/metrics/v3/stats_pb.js'
import type { DatadogConfigJson } from '../../protocols/gen/envoy/config/trace/v3/datadog_pb.js'
import type { ZipkinConfigJson } from '../../protocols/gen/envoy/config/trace/v3/zipkin_pb.js'
import type { FileAccessLogJson } from '../../protocols/gen/envoy/extensions/access_loggers/file/v3/file_pb.js'
import type { RouterJson } from '../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import type { HttpConnectionManagerJson } from '../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { UpstreamTlsContextJson } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { HttpProtocolOptionsJson } from '../../protocols/gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js'

/**
 * `envoy.extensions.clusters.dns.v3.DnsCluster` (since Envoy 1.34), which replaces deprecated fields of a cluster. Our schemas do not
 * include it.
 */
export interface DnsClusterJson {
  readonly dnsLookupFamily?: 'AUTO' | 'V4_ONLY'
  readonly dnsRefreshRate?: `${number}s`
  readonly respectDnsTtl?: boolean
}

/** `envoy.config.grpc_credential.v3.FileBasedMetadataConfig`: a header of calls whose value is read from a file for each call. */
export interface FileBasedMetadataJson {
  readonly secretData: { readonly filename: string }
  readonly headerPrefix: string
}

/** The messages that a bootstrap packs into `Any`, by type name. */
interface Messages {
  'envoy.config.grpc_credential.v3.FileBasedMetadataConfig': FileBasedMetadataJson
  'envoy.config.metrics.v3.MetricsServiceConfig': MetricsServiceConfigJson
  'envoy.config.metrics.v3.StatsdSink': StatsdSinkJson
  'envoy.config.trace.v3.DatadogConfig': DatadogConfigJson
  'envoy.config.trace.v3.ZipkinConfig': ZipkinConfigJson
  'envoy.extensions.access_loggers.file.v3.FileAccessLog': FileAccessLogJson
  'envoy.extensions.clusters.dns.v3.DnsCluster': DnsClusterJson
  'envoy.extensions.filters.http.router.v3.Router': RouterJson
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': HttpConnectionManagerJson
  'envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig': { readonly maxActiveDownstreamConnections: `${bigint}` }
  'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext': UpstreamTlsContextJson
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': HttpProtocolOptionsJson
}

/** Packs a message into a `google.protobuf.Any`. */
export function typed<T extends keyof Messages>(type: T, message: Messages[T]): Messages[T] & { '@type': string } {
  return { '@type': `type.googleapis.com/${type}`, ...message }
}
