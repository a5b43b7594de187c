/** Parses mesh configuration and networks that are given as documents: shapes and defaults. */
import type { MeshNamesEvent } from '../../protocols/messages/identity.ts'
import { isIp, isIpOrCidr } from './addresses.ts'
import { actorOfSource, configSourcesShape } from './config-sources.ts'
import { type GivenProxyConfig, proxyConfigShape, proxyDefaults } from './proxy-config.ts'
import {
  anything,
  duration,
  flag,
  integer,
  isMapping,
  list,
  map,
  oneOf,
  type Read,
  type Report,
  record,
  reject,
  rejectBeside,
  required,
  type Shape,
  text,
  unused,
} from './shape.ts'
import { localityLbShape, tcpKeepaliveShape } from './shapes/connections.ts'
import { exportList } from './shapes/export-list.ts'
import { trustDomainFault } from './trust-domain.ts'

/** A map of header names and values (RFC 9110, section 5). */
const additionalHeaders = ((): Shape<Record<string, string>> => {
  const { form, read } = map(text({ max: 16_384, pattern: /^[^\0\r\n]*$/, what: 'one line' }))
  return {
    form,
    read(value, path, report) {
      const headers = read(value, path, report)
      for (const name of Object.keys(headers ?? {}))
        if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) reject(report, `${path}[${name.slice(0, 100).toWellFormed()}]`, 'not the name of a header')
      return headers
    },
  }
})()

const authorizer = {
  service: required(text()),
  port: required(integer(1, 65_535)),
  failOpen: flag,
  timeout: duration(1),
  clearRouteCache: flag,
  includeRequestBodyInCheck: record({ maxRequestBytes: required(integer(1, 4_294_967_295)), allowPartialMessage: flag, packAsBytes: flag }),
  statusOnError: text({ pattern: /^(20[0-8]|226|30[0-5]|30[78]|40\d|41[0-7]|42[1-46]|42[89]|431|50[0-8]|51[01])$/, what: 'an HTTP status' }),
}

/** A selector of labels as the orchestrator has it: all of its parts must hold. */
export const labelSelectorShape = record({
  matchLabels: map(text({ max: 63 })),
  matchExpressions: list(
    record(
      { key: required(text({ max: 317 })), operator: required(oneOf('In', 'NotIn', 'Exists', 'DoesNotExist')), values: list(text({ max: 63 })) },
      ({ operator, values = [] }, path, report) => {
        if ((operator === 'In' || operator === 'NotIn') !== values.length > 0)
          reject(report, `${path}.values`, `${operator} ${values.length > 0 ? 'takes no values' : 'needs values'}`)
      },
    ),
  ),
})

/** Providers of access logs, metrics and traces. They have no effect. */
const idleProviders = Object.fromEntries(
  [
    'zipkin',
    'lightstep',
    'datadog',
    'stackdriver',
    'opencensus',
    'skywalking',
    'opentelemetry',
    'prometheus',
    'envoyFileAccessLog',
    'envoyHttpAls',
    'envoyTcpAls',
    'envoyOtelAls',
    'sds',
  ].map((name) => [name, unused(anything)]),
)

const trustDomain = text({ check: trustDomainFault, examples: ['cluster.local', 'td.example', 'my_project.example'] })

/** A name of a certificate: a host, or a wildcard for its first label. */
const dnsName = text({
  max: 253,
  pattern: /^(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/,
  what: 'a DNS name in small letters',
})
const secretName = text({ max: 253, pattern: /^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$/, what: 'the name of a Secret' })

const meshFields = {
  trustDomain,
  trustDomainAliases: list(trustDomain),
  rootNamespace: text(),
  enableAutoMtls: flag,
  outboundTrafficPolicy: record({ mode: oneOf('REGISTRY_ONLY', 'ALLOW_ANY') }),
  enableTracing: flag,
  accessLogFile: text(),
  accessLogEncoding: oneOf('TEXT', 'JSON'),
  accessLogFormat: text(),
  enableEnvoyAccessLogService: flag,
  disableEnvoyListenerLog: flag,
  connectTimeout: duration(1),
  tcpKeepalive: tcpKeepaliveShape,
  // Envoy requires more than one millisecond.
  dnsRefreshRate: duration(2),
  h2UpgradePolicy: oneOf('DO_NOT_UPGRADE', 'UPGRADE'),
  localityLbSetting: localityLbShape,
  inboundClusterStatName: text(),
  outboundClusterStatName: text(),
  proxyListenPort: integer(0, 65_535),
  proxyHttpPort: integer(0, 65_535),
  protocolDetectionTimeout: duration(),
  defaultServiceExportTo: exportList,
  defaultVirtualServiceExportTo: exportList,
  defaultDestinationRuleExportTo: exportList,
  ingressClass: text({ max: 253 }),
  ingressControllerMode: oneOf('UNSPECIFIED', 'OFF', 'DEFAULT', 'STRICT'),
  ingressService: text({ max: 253 }),
  ingressSelector: text({ max: 63 }),
  pathNormalization: record({ normalization: oneOf('DEFAULT', 'NONE', 'BASE', 'MERGE_SLASHES', 'DECODE_AND_MERGE_SLASHES') }),
  enablePrometheusMerge: flag,
  extensionProviders: list(
    record(
      {
        name: required(text()),
        envoyExtAuthzHttp: record({
          ...authorizer,
          pathPrefix: text({ pattern: /^\//, what: 'a path' }),
          includeHeadersInCheck: list(text()),
          headersToUpstreamOnAllow: list(text()),
          headersToDownstreamOnDeny: list(text()),
          headersToDownstreamOnAllow: list(text()),
          includeRequestHeadersInCheck: list(text()),
          includeAdditionalHeadersInCheck: additionalHeaders,
        }),
        envoyExtAuthzGrpc: record(authorizer),
        ...idleProviders,
      },
      (value, path, report) => rejectBeside(value, ['envoyExtAuthzHttp', 'envoyExtAuthzGrpc', ...Object.keys(idleProviders)], path, report),
    ),
  ),
  proxyInboundListenPort: unused(integer(0, 65_535)),
  hboneIdleTimeout: unused(duration()),
  inboundTrafficPolicy: unused(anything),
  caCertificates: unused(anything),
  zoneAwareLbSetting: unused(anything),
  serviceScopeConfigs: unused(anything),
  verifyCertificateAtClient: unused(flag),
  ca: unused(anything),
  defaultProviders: unused(anything),
  discoverySelectors: list(labelSelectorShape),
  defaultHttpRetryPolicy: unused(anything),
  meshMTLS: unused(anything),
  tlsDefaults: unused(anything),
  defaultTrafficPolicy: unused(anything),
  serviceEntryVisibility: unused(anything),
  serviceSettings: list(record({ settings: record({ clusterLocal: flag }), hosts: list(text()) })),
  configSources: configSourcesShape,
  certificates: list(record({ secretName, dnsNames: list(dnsName) })),
  thriftConfig: unused(record({ rateLimitUrl: text(), rateLimitTimeout: duration() }), 'Thrift calls are not limited yet'),
  defaultConfig: proxyConfigShape,
}
export const meshShape = record(meshFields, (value, path, report) => {
  if (value.accessLogEncoding !== 'JSON' || !value.accessLogFormat) return
  const reason = jsonMappingFault(value.accessLogFormat)
  if (reason) reject(report, path === '' ? 'accessLogFormat' : `${path}.accessLogFormat`, reason)
})

/** Returns why text is not a JSON object. Undefined when it is one. */
function jsonMappingFault(content: string): string | undefined {
  try {
    return isMapping(JSON.parse(content)) ? undefined : 'not a mapping in JSON'
  } catch (error) {
    return `not JSON: ${(error as Error).message}`
  }
}

const cidr = text({
  check: (value) => (value.includes('/') && isIpOrCidr(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is not a CIDR`),
  examples: ['10.0.0.0/8', '::/0'],
})
const host = text({
  check: (value) =>
    isIp(value) || /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$/.test(value) ? undefined : 'neither an IP address nor a host name',
  examples: ['10.9.9.9', '::1', 'gateway.example.com', 'localhost'],
})

export const networksShape = record({
  networks: map(
    record({
      endpoints: list(
        record({ fromCidr: cidr, fromRegistry: text() }, (value, path, report) => rejectBeside(value, ['fromCidr', 'fromRegistry'], path, report)),
      ),
      gateways: list(
        record({ address: host, registryServiceName: text(), port: integer(1, 65_535), locality: unused(text()) }, (value, path, report) =>
          rejectBeside(value, ['address', 'registryServiceName'], path, report),
        ),
      ),
    }),
  ),
})

const defaults = {
  trustDomain: 'cluster.local',
  trustDomainAliases: [] as string[],
  rootNamespace: 'mesh-system',
  enableAutoMtls: true,
  outboundTrafficPolicy: { mode: 'ALLOW_ANY' as 'ALLOW_ANY' | 'REGISTRY_ONLY' },
  enableTracing: true,
  accessLogFile: '',
  accessLogEncoding: 'TEXT' as 'TEXT' | 'JSON',
  accessLogFormat: '',
  enableEnvoyAccessLogService: false,
  disableEnvoyListenerLog: false,
  connectTimeout: 10_000,
  dnsRefreshRate: 5000,
  h2UpgradePolicy: 'DO_NOT_UPGRADE' as 'DO_NOT_UPGRADE' | 'UPGRADE',
  inboundClusterStatName: '',
  outboundClusterStatName: '',
  proxyListenPort: 15_001,
  proxyHttpPort: 0,
  protocolDetectionTimeout: 0,
  defaultServiceExportTo: ['*'],
  defaultVirtualServiceExportTo: ['*'],
  defaultDestinationRuleExportTo: ['*'],
  ingressClass: 'mesh',
  ingressControllerMode: 'STRICT' as 'UNSPECIFIED' | 'OFF' | 'DEFAULT' | 'STRICT',
  ingressService: 'mesh-ingressgateway',
  ingressSelector: '',
  enablePrometheusMerge: true,
  pathNormalization: { normalization: 'DEFAULT' as 'DEFAULT' | 'NONE' | 'BASE' | 'MERGE_SLASHES' | 'DECODE_AND_MERGE_SLASHES' },
}

/** Defaults of settings that discovery applies to proxies without a value of their own. */
const sharedProxyDefaults = {
  gatewayTopology: { numTrustedProxies: 0, forwardClientCertDetails: 'SANITIZE_SET' },
  holdApplicationUntilProxyStarts: false,
}

/** The settings of a proxy with defaults filled in; durations in milliseconds. */
export type ProxyConfig = GivenProxyConfig
/** The mesh configuration with defaults filled in; durations in milliseconds. */
export type MeshConfig = Omit<Read<typeof meshShape>, keyof typeof defaults> & typeof defaults & { defaultConfig: ProxyConfig }
/** Networks, their endpoints and gateways. */
export type MeshNetworks = Read<typeof networksShape>

/** Returns the mesh configuration that applies without a file. */
export function defaultMeshConfig(): MeshConfig {
  return { ...defaults, defaultConfig: { ...proxyDefaults, ...sharedProxyDefaults } as ProxyConfig }
}

/** Returns a mesh configuration with the trust domain of `--trust-domain`. An empty flag changes nothing. */
export function withTrustDomain(mesh: MeshConfig, trustDomain: string): MeshConfig {
  return trustDomain === '' ? mesh : { ...mesh, trustDomain }
}

/** The parts of a mesh configuration needed to verify identities and to find the discovery service. */
export function namesOfMesh(mesh: MeshConfig): MeshNamesEvent {
  const { trustDomain, trustDomainAliases, rootNamespace, defaultConfig, configSources = [], certificates = [] } = mesh
  const { ingressClass: className, ingressControllerMode, ingressService: service, ingressSelector: selector } = mesh
  const mode = ingressControllerMode === 'UNSPECIFIED' ? 'STRICT' : ingressControllerMode
  return {
    type: 'MeshNamesChanged',
    trustDomain,
    trustDomainAliases,
    rootNamespace,
    discoveryAddress: defaultConfig.discoveryAddress ?? '',
    ingress: { mode, className, service, selector },
    ...(configSources.length > 0 && { sources: configSources.map(actorOfSource) }),
    ...(certificates.length > 0 && {
      certificates: certificates.map(({ secretName: name = '', dnsNames = [] }) => ({ secretName: name, dnsNames })),
    }),
  }
}

/** The forms of mesh configuration and networks files. */
export const meshForm = meshShape.form
export const networksForm = networksShape.form

/** Parses the JSON of a proxy's `PROXY_CONFIG` metadata. Invalid fields are left out. */
export function readProxyConfig(value: unknown): ProxyConfig {
  const report: Report = { faults: [], warnings: [] }
  return (isMapping(value) ? proxyConfigShape.read(value, '', report) : undefined) ?? {}
}
