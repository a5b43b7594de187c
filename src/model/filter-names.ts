/** Deprecated names of filters of Envoy, which patches may use (docs/resources.md, F3). */

/** The present names of filters by their deprecated ones. */
const presentNames: Readonly<Record<string, string>> = {
  'envoy.http_connection_manager': 'envoy.filters.network.http_connection_manager',
  'envoy.tcp_proxy': 'envoy.filters.network.tcp_proxy',
  'envoy.mongo_proxy': 'envoy.filters.network.mongo_proxy',
  'envoy.mysql_proxy': 'envoy.filters.network.mysql_proxy',
  'envoy.redis_proxy': 'envoy.filters.network.redis_proxy',
  'envoy.ratelimit': 'envoy.filters.network.ratelimit',
  'envoy.router': 'envoy.filters.http.router',
  'envoy.buffer': 'envoy.filters.http.buffer',
  'envoy.cors': 'envoy.filters.http.cors',
  'envoy.csrf': 'envoy.filters.http.csrf',
  'envoy.fault': 'envoy.filters.http.fault',
  'envoy.grpc_web': 'envoy.filters.http.grpc_web',
  'envoy.grpc_json_transcoder': 'envoy.filters.http.grpc_json_transcoder',
  'envoy.health_check': 'envoy.filters.http.health_check',
  'envoy.ip_tagging': 'envoy.filters.http.ip_tagging',
  'envoy.lua': 'envoy.filters.http.lua',
  'envoy.ext_authz': 'envoy.filters.http.ext_authz',
  'envoy.rate_limit': 'envoy.filters.http.ratelimit',
  'envoy.listener.http_inspector': 'envoy.filters.listener.http_inspector',
  'envoy.listener.original_dst': 'envoy.filters.listener.original_dst',
  'envoy.listener.original_src': 'envoy.filters.listener.original_src',
  'envoy.listener.proxy_protocol': 'envoy.filters.listener.proxy_protocol',
  'envoy.listener.tls_inspector': 'envoy.filters.listener.tls_inspector',
}

/** Returns the present name of a filter that is named by a deprecated one. Undefined for any other name. */
export const presentFilterName = (name: string): string | undefined => (Object.hasOwn(presentNames, name) ? presentNames[name] : undefined)
