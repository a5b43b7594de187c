/** The parameters of a user's bootstrap template, with the names that the reference uses (docs/agent.md, B18). */
import { proxyConfigShape } from '../config/proxy-config.ts'
import { type Functions, templateFunction } from '../template/function.ts'
import { toJson } from '../template/printed.ts'
import { fromJson, type Value } from '../template/values.ts'
import { clientFiles, keepalive } from './clusters.ts'
import { goConfig } from './go-config.ts'
import { peerTls, type TlsPeer } from './peer-tls.ts'
import { splitAddress } from './proxy-config.ts'
import type { BootstrapSettings } from './settings.ts'
import { keptPrefixes, namedTags } from './stats.ts'

/**
 * Facts that only templates use: the source of the discovery service's certificates, the port of the token service (0 for none), and the
 * cloud project.
 */
export interface TemplateFacts {
  readonly certificateProvider: string
  readonly stsPort: number
  readonly project: string
}

/** The functions of bootstrap templates besides those of Go. */
export const templateFunctions: Functions = new Map([
  ['toJSON', templateFunction(['any'], (budget, value) => (value === null ? '{}' : toJson(value, budget)))],
])

/** Returns the parameters. Unset ones are absent. Throws an Error that names the field when TLS settings lack a file. */
export function templateParameters(settings: BootstrapSettings, { certificateProvider, stsPort, project }: TemplateFacts): Value {
  const { config, node, locality, stats, discovery } = settings
  const { tracing } = config
  const parameters: Record<string, unknown> = {
    nodeID: node.id,
    cluster: node.serviceCluster,
    region: locality.region,
    zone: locality.zone,
    sub_zone: locality.subZone,
    meta_json_str: JSON.stringify(node.metadata),
    pilot_SAN: [discovery.address.serverName],
    localhost: settings.localhost,
    wildcard: settings.wildcard,
    dns_lookup_family: settings.dnsLookupFamily,
    proxy_via_agent: settings.isViaAgent,
    discovery_address: config.discoveryAddress,
    discovery_host: discovery.address.host,
    pilot_grpc_address: socketAddress(config.discoveryAddress),
    provisioned_cert: discovery.pair?.chain.replace(/\/[^/]*$/, ''),
    pilot_cert_provider: certificateProvider,
    call_credentials: settings.callCredentials?.stsPort && true,
    sts: stsPort > 0 || undefined,
    sts_port: stsPort > 0 ? String(stsPort) : undefined,
    gcp_project_id: project || undefined,
    zipkin: socketAddress(tracing.zipkin?.address),
    lightstep: socketAddress(tracing.lightstep?.address),
    datadog: socketAddress(tracing.datadog?.address),
    openCensusAgent: tracing.openCensusAgent?.address,
    openCensusAgentContexts: tracing.openCensusAgent && JSON.stringify(contextNames(tracing.openCensusAgent.context)),
    stackdriver: tracing.stackdriver && true,
    stackdriverProjectID: tracing.stackdriver && project,
    stackdriverDebug: tracing.stackdriver?.debug,
    stackdriverMaxAnnotations: tracing.stackdriver && (tracing.stackdriver.maxNumberOfAnnotations ?? 200),
    stackdriverMaxAttributes: tracing.stackdriver && (tracing.stackdriver.maxNumberOfAttributes ?? 200),
    stackdriverMaxEvents: tracing.stackdriver && (tracing.stackdriver.maxNumberOfMessageEvents ?? 200),
    tracing_tls: tls(settings, tracing.tlsSettings, { field: 'tracing', serverName: 'tracer', isHttp2: !(tracing.zipkin ?? tracing.datadog) }),
    ...report(settings, 'envoy_metrics_service', 'envoyMetricsService'),
    ...report(settings, 'envoy_accesslog_service', 'envoyAccessLogService'),
    statsd: settings.statsd && JSON.stringify({ address: settings.statsd.host, port_value: settings.statsd.port }),
    extraStatTags: namedTags(stats),
    inclusionPrefix: [...stats.inclusionPrefixes, ...keptPrefixes],
    inclusionSuffix: stats.inclusionSuffixes.length > 0 ? stats.inclusionSuffixes : undefined,
    inclusionRegexps: stats.inclusionRegexps.length > 0 ? stats.inclusionRegexps : undefined,
    outlier_log_path: settings.outlierLogPath || undefined,
  }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return new Map<string, Value>([
    ...given.map(([name, value]): [string, Value] => [name, fromJson(value)]),
    ['config', goConfig(proxyConfigShape.form, config, 'ProxyConfig')],
  ])
}

/** Encodes an `envoy.config.core.v3.SocketAddress` in JSON. */
function socketAddress(address: string | undefined): string | undefined {
  const parts = address ? splitAddress(address) : undefined
  return parts && JSON.stringify({ address: parts.host, port_value: parts.port })
}

function tls(settings: BootstrapSettings, given: Parameters<typeof peerTls>[0], peer: TlsPeer): string | undefined {
  const socket = peerTls(given, peer, clientFiles(settings))
  return socket && JSON.stringify(socket)
}

function report(
  settings: BootstrapSettings,
  name: string,
  field: 'envoyMetricsService' | 'envoyAccessLogService',
): Record<string, string | undefined> {
  const { address, tlsSettings, tcpKeepalive } = settings.config[field] ?? {}
  return {
    [`${name}_address`]: socketAddress(address),
    [`${name}_tls`]: tls(settings, tlsSettings, { field, serverName: name, isHttp2: true }),
    [`${name}_tcp_keepalive`]: tcpKeepalive && JSON.stringify(keepalive(tcpKeepalive).upstreamConnectionOptions?.tcpKeepalive),
  }
}

const contexts: Readonly<Record<string, string>> = {
  W3C_TRACE_CONTEXT: 'TRACE_CONTEXT',
  GRPC_BIN: 'GRPC_TRACE_BIN',
  CLOUD_TRACE_CONTEXT: 'CLOUD_TRACE_CONTEXT',
  B3: 'B3',
}

/** Returns Envoy's names of the chosen trace contexts; all when none is chosen. */
const contextNames = (chosen: readonly string[] = []): string[] =>
  (chosen.length > 0 ? chosen : Object.keys(contexts)).flatMap((name) => contexts[name] ?? [])
