/** The proxy's statistics: tags, inclusion patterns and sinks (envoy.config.metrics.v3). */
import type { BootstrapJson } from '../../protocols/gen/envoy/config/bootstrap/v3/bootstrap_pb.js'
import type { StatsConfigJson, TagSpecifierJson } from '../../protocols/gen/envoy/config/metrics/v3/stats_pb.js'
import type { StringMatcherJson } from '../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ProxyConfig } from './proxy-config.ts'
import { typed } from './typed.ts'

/** Matches an address with a port in a statistic's name: digits, or hexadecimal digits in brackets, with separators. */
const address = String.raw`(?:[_.\d]+|[_\[\]a-fA-F\d]+)`

/**
 * Tags of Envoy's own statistics. The first group of a pattern is removed from the name, the second one is the value. Depending on its
 * release, Envoy evaluates the patterns with the regular expressions of C++ or with RE2, so they use only syntax that both support.
 */
const proxyTags: readonly (readonly [name: string, pattern: string])[] = [
  ['cluster_name', String.raw`^cluster\.(([^.]+(?:\..+?\.svc\.cluster\.local)?)\.)`],
  ['tcp_prefix', String.raw`^tcp\.((.+?)\.)\w+$`],
  ['response_code', String.raw`(?:_rq|[.;])((?:_|response_code=\.=)(\d{3})(?:;\.;|$))`],
  ['response_code_class', String.raw`_rq(_(\dxx))$`],
  ['http_conn_manager_listener_prefix', String.raw`^listener\..*?\.http\.((${address})\.)`],
  ['http_conn_manager_prefix', String.raw`^http\.((${address})\.)`],
  ['listener_address', String.raw`^listener\.((${address})\.)`],
  ['mongo_prefix', String.raw`^mongo\.((.+?)\.)(?:collection|cmd|cx_|op_|delays_|decoding_)`],
]

const peerTags = ['namespace', 'workload', 'workload_namespace', 'principal', 'app', 'version', 'cluster', 'canonical_service', 'canonical_revision']

/**
 * Tags that mesh extensions write into names as `<tag>=.=<value>;.;`. The response code is in `proxyTags`, with a pattern for both forms.
 */
const meshTags = [
  'reporter',
  ...['source', 'destination'].flatMap((side) => peerTags.map((tag) => `${side}_${tag}`)),
  'destination_service',
  'destination_service_name',
  'destination_service_namespace',
  'destination_port',
  'request_protocol',
  'request_operation',
  'request_host',
  'response_flags',
  'grpc_response_status',
  'connection_security_policy',
  'permissive_response_code',
  'permissive_response_policyid',
]

/** Tags that extensions write into names as `<tag>.<value>.`. */
const extensionTags: readonly (readonly [name: string, pattern: string])[] = [
  ['cache', String.raw`(cache\.(.+?)\.)`],
  ['component', String.raw`(component\.(.+?)\.)`],
  ['tag', String.raw`(tag\.(.+?);\.)`],
  ['wasm_filter', String.raw`(wasm_filter\.(.+?)\.)`],
]

/** Escapes text for a regular expression. */
const literal = (text: string): string => text.replaceAll(/[^\w]/g, (letter) => `\\${letter}`)

const meshTag = (name: string): readonly [string, string] => [name, String.raw`(${literal(name)}=\.=(.*?);\.;)`]

/** Prefixes of the statistics that are always included: the agent and operators need them. */
export const keptPrefixes = ['cluster_manager', 'listener_manager', 'server', 'cluster.xds-grpc', 'wasm']

/** The tags and inclusion patterns that a workload's configuration and annotations ask for. */
export interface StatsChoice {
  /** From the configuration, then from the annotation, without duplicates. */
  readonly extraTags: readonly string[]
  readonly inclusionPrefixes: readonly string[]
  readonly inclusionSuffixes: readonly string[]
  readonly inclusionRegexps: readonly string[]
}

/**
 * Reads the choice (docs/agent.md, B12). An annotation replaces the configuration's patterns of the same kind; tags are added. Keys of
 * annotations are in the mesh form.
 */
export function statsChoice(config: ProxyConfig, annotations: Readonly<Record<string, unknown>>, domain: string): StatsChoice {
  const annotated = (name: string): string[] | undefined => {
    const value = Object.hasOwn(annotations, `sidecar.${domain}/${name}`) ? annotations[`sidecar.${domain}/${name}`] : undefined
    return typeof value === 'string' ? commaList(value) : undefined
  }
  const { inclusionPrefixes = [], inclusionSuffixes = [], inclusionRegexps = [] } = config.proxyStatsMatcher ?? {}
  return {
    extraTags: [...new Set([...(config.extraStatTags ?? []), ...(annotated('extraStatTags') ?? [])])],
    inclusionPrefixes: annotated('statsInclusionPrefixes') ?? inclusionPrefixes,
    inclusionSuffixes: annotated('statsInclusionSuffixes') ?? inclusionSuffixes,
    inclusionRegexps: annotated('statsInclusionRegexps') ?? inclusionRegexps,
  }
}

const commaList = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')

/** Returns the names of the mesh's tags and of the extra tags, without those that have a pattern of their own. */
export function namedTags(choice: StatsChoice): string[] {
  const known = new Set([...proxyTags, ...extensionTags].map(([name]) => name))
  return [...new Set([...meshTags, ...choice.extraTags])].filter((name) => !known.has(name))
}

/** Returns the `stats_config` of a bootstrap. */
export function statsConfig(choice: StatsChoice, addresses: readonly string[]): StatsConfigJson {
  const tags = [...proxyTags, ...namedTags(choice).map(meshTag), ...extensionTags]
  return {
    useAllDefaultTags: false,
    statsTags: tags.map(([tagName, regex]): TagSpecifierJson => ({ tagName, regex })),
    statsMatcher: { inclusionList: { patterns: inclusionPatterns(choice, addresses) } },
  }
}

function inclusionPatterns(choice: StatsChoice, addresses: readonly string[]): StringMatcherJson[] {
  // Names of statistics contain no colons.
  const written = addresses.map((address) => address.replaceAll(':', '_'))
  const forAddresses = (patterns: readonly string[], form = (address: string) => address) =>
    patterns.flatMap((pattern) =>
      pattern.includes('{pod_ip}') ? written.map((address) => pattern.replaceAll('{pod_ip}', () => form(address))) : [pattern],
    )
  const prefixes = [...new Set([...forAddresses(choice.inclusionPrefixes), ...keptPrefixes])]
  return [
    { prefix: 'reporter=' },
    ...prefixes.map((prefix) => ({ prefix })),
    ...forAddresses(choice.inclusionSuffixes).map((suffix) => ({ suffix })),
    ...forAddresses(choice.inclusionRegexps, literal).map((regex) => ({ safeRegex: { regex } })),
    { prefix: 'component' },
  ]
}

/** Returns the `stats_sinks` of a bootstrap. `statsd` is the resolved address of the collector. */
export function statsSinks(
  config: ProxyConfig,
  statsd: { readonly host: string; readonly port: number } | undefined,
): NonNullable<BootstrapJson['statsSinks']> {
  const sinks: NonNullable<BootstrapJson['statsSinks']> = []
  if (config.envoyMetricsService)
    sinks.push({
      name: 'envoy.stat_sinks.metrics_service',
      typedConfig: typed('envoy.config.metrics.v3.MetricsServiceConfig', {
        transportApiVersion: 'V3',
        grpcService: { envoyGrpc: { clusterName: 'envoy_metrics_service' } },
      }),
    })
  if (statsd)
    sinks.push({
      name: 'envoy.stat_sinks.statsd',
      typedConfig: typed('envoy.config.metrics.v3.StatsdSink', {
        address: { socketAddress: { protocol: 'UDP', address: statsd.host, portValue: statsd.port } },
      }),
    })
  return sinks
}
