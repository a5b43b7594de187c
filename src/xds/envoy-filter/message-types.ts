/** Message types that may occur in an `Any`, for EnvoyFilters and for debug pages. */
import { inflateRawSync } from 'node:zlib'
import { createFileRegistry, createRegistry, type DescMessage, fromBinary, type Registry } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { MySQLProxySchema } from '../../../protocols/gen/contrib/mysql_proxy_pb.js'
import { FileAccessLogSchema } from '../../../protocols/gen/envoy/extensions/access_loggers/file/v3/file_pb.js'
import { HttpGrpcAccessLogConfigSchema, TcpGrpcAccessLogConfigSchema } from '../../../protocols/gen/envoy/extensions/access_loggers/grpc/v3/als_pb.js'
import { StderrAccessLogSchema, StdoutAccessLogSchema } from '../../../protocols/gen/envoy/extensions/access_loggers/stream/v3/stream_pb.js'
import { GzipSchema } from '../../../protocols/gen/envoy/extensions/compression/gzip/compressor/v3/gzip_pb.js'
import { BufferPerRouteSchema, BufferSchema } from '../../../protocols/gen/envoy/extensions/filters/http/buffer/v3/buffer_pb.js'
import { CompressorPerRouteSchema, CompressorSchema } from '../../../protocols/gen/envoy/extensions/filters/http/compressor/v3/compressor_pb.js'
import { CorsPolicySchema, CorsSchema } from '../../../protocols/gen/envoy/extensions/filters/http/cors/v3/cors_pb.js'
import { CsrfPolicySchema } from '../../../protocols/gen/envoy/extensions/filters/http/csrf/v3/csrf_pb.js'
import { ExtAuthzPerRouteSchema, ExtAuthzSchema } from '../../../protocols/gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.js'
import { HTTPFaultSchema } from '../../../protocols/gen/envoy/extensions/filters/http/fault/v3/fault_pb.js'
import { FilterConfigSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.js'
import { GrpcWebSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.js'
import {
  HeaderMutationPerRouteSchema,
  HeaderMutationSchema,
} from '../../../protocols/gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js'
import { HealthCheckSchema } from '../../../protocols/gen/envoy/extensions/filters/http/health_check/v3/health_check_pb.js'
import { JwtAuthenticationSchema, PerRouteConfigSchema } from '../../../protocols/gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.js'
import { LocalRateLimitSchema } from '../../../protocols/gen/envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit_pb.js'
import { LuaPerRouteSchema, LuaSchema } from '../../../protocols/gen/envoy/extensions/filters/http/lua/v3/lua_pb.js'
import { RateLimitPerRouteSchema, RateLimitSchema } from '../../../protocols/gen/envoy/extensions/filters/http/ratelimit/v3/rate_limit_pb.js'
import { RBACPerRouteSchema, RBACSchema } from '../../../protocols/gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.js'
import { RouterSchema } from '../../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import { ConfigSchema } from '../../../protocols/gen/envoy/extensions/filters/http/set_filter_state/v3/set_filter_state_pb.js'
import { HttpInspectorSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.js'
import { OriginalDstSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.js'
import { OriginalSrcSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.js'
import { ProxyProtocolSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.js'
import { TlsInspectorSchema } from '../../../protocols/gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.js'
import { ExtAuthzSchema as NetworkExtAuthzExtAuthzSchema } from '../../../protocols/gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.js'
import { HttpConnectionManagerSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { LocalRateLimitSchema as NetworkLocalRatelimitLocalRateLimitSchema } from '../../../protocols/gen/envoy/extensions/filters/network/local_ratelimit/v3/local_rate_limit_pb.js'
import { MongoProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.js'
import { RBACSchema as NetworkRbacRBACSchema } from '../../../protocols/gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.js'
import { RedisProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.js'
import { SniClusterSchema } from '../../../protocols/gen/envoy/extensions/filters/network/sni_cluster/v3/sni_cluster_pb.js'
import { TcpProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js'
import { ThriftProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/thrift_proxy/v3/thrift_proxy_pb.js'
import { HeaderMutationSchema as EarlyHeaderMutationSchema } from '../../../protocols/gen/envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation_pb.js'
import { UriTemplateMatchConfigSchema } from '../../../protocols/gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.js'
import { PreviousHostsPredicateSchema } from '../../../protocols/gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js'
import { PreviousPrioritiesConfigSchema } from '../../../protocols/gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.js'
import { ProxyProtocolUpstreamTransportSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.js'
import { RawBufferSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.js'
import { DownstreamTlsContextSchema, UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import { HttpProtocolOptionsSchema } from '../../../protocols/gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js'
import { extensionTypes } from '../../../protocols/gen/extension-types.js'

/** Types that are loaded at every start. */
const loadedTypes = createRegistry(
  FileAccessLogSchema,
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
  GzipSchema,
  BufferPerRouteSchema,
  BufferSchema,
  CompressorPerRouteSchema,
  CompressorSchema,
  CorsPolicySchema,
  CorsSchema,
  CsrfPolicySchema,
  ExtAuthzPerRouteSchema,
  ExtAuthzSchema,
  HTTPFaultSchema,
  FilterConfigSchema,
  GrpcWebSchema,
  HeaderMutationPerRouteSchema,
  HeaderMutationSchema,
  EarlyHeaderMutationSchema,
  HealthCheckSchema,
  JwtAuthenticationSchema,
  PerRouteConfigSchema,
  LocalRateLimitSchema,
  LuaPerRouteSchema,
  LuaSchema,
  RateLimitPerRouteSchema,
  RateLimitSchema,
  RBACPerRouteSchema,
  RBACSchema,
  RouterSchema,
  ConfigSchema,
  HttpInspectorSchema,
  OriginalDstSchema,
  OriginalSrcSchema,
  ProxyProtocolSchema,
  TlsInspectorSchema,
  NetworkExtAuthzExtAuthzSchema,
  HttpConnectionManagerSchema,
  NetworkLocalRatelimitLocalRateLimitSchema,
  MongoProxySchema,
  MySQLProxySchema,
  NetworkRbacRBACSchema,
  RedisProxySchema,
  SniClusterSchema,
  TcpProxySchema,
  ThriftProxySchema,
  PreviousHostsPredicateSchema,
  PreviousPrioritiesConfigSchema,
  ProxyProtocolUpstreamTransportSchema,
  RawBufferSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
  UriTemplateMatchConfigSchema,
  HttpProtocolOptionsSchema,
)

/**
 * Decodes the schemas of all extensions of Envoy once, when a type is looked up that is not among the loaded ones. Takes 65 ms of CPU and
 * 10 MB.
 */
const allTypes = (() => {
  const read = (): Registry => createFileRegistry(fromBinary(FileDescriptorSetSchema, inflateRawSync(Buffer.from(extensionTypes, 'base64'))))
  const known: { registry?: Registry } = {}
  return () => (known.registry ??= read())
})()

/** Returns the message type of a name; undefined if it is not in the schemas here. A newer release of Envoy may have more types. */
const messageType = (name: string): DescMessage | undefined => loadedTypes.getMessage(name) ?? allTypes().getMessage(name)

/** A registry of all these types, for reading and writing an `Any` as JSON. */
export const messageTypes: Registry = { ...loadedTypes, getMessage: messageType, [Symbol.iterator]: () => loadedTypes[Symbol.iterator]() }
