/** The configuration of one proxy (`defaultConfig` of the mesh configuration, `PROXY_CONFIG`, an annotation): shape and defaults. */
import {
  anything,
  decimal,
  duration,
  flag,
  integer,
  list,
  map,
  oneOf,
  only,
  type Read,
  record,
  reject,
  rejectBeside,
  required,
  text,
  unused,
} from './shape.ts'
import { tcpKeepaliveShape } from './shapes/connections.ts'
import { tlsMode } from './shapes/tls.ts'

const tlsSettings = record({
  mode: tlsMode('DISABLE', 'SIMPLE', 'MUTUAL', 'MESH_MUTUAL'),
  clientCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName: unused(text()),
  subjectAltNames: list(text()),
  sni: text(),
})

/** A gRPC service that a proxy reports to. */
const remoteService = record({ address: text(), tlsSettings, tcpKeepalive: tcpKeepaliveShape })

const count = integer(0, 2_147_483_647)

const headerName = text({ pattern: /^[!#$%&'*+.^_`|~\w-]+$/, what: 'the name of a header', examples: ['x-probe'] })
const filled = text({ max: 1024, pattern: /./, what: 'a value of at least one character', examples: ['x'] })

/** The value of a tag of trace spans. Exactly one of its sources must be given. */
const customTag = record(
  {
    literal: record({ value: required(filled) }),
    environment: record({ name: required(filled), defaultValue: text() }),
    header: record({ name: required(headerName), defaultValue: text() }),
  },
  ({ literal, environment, header }, path, report) => {
    const given = [literal, environment, header].filter((source) => source !== undefined).length
    if (given !== 1) reject(report, path, 'needs exactly one of literal, environment and header')
  },
)

/** The value of a tag of trace spans. */
export type CustomTag = Read<typeof customTag>

/** Tracers that stock Envoy has not (docs/agent.md, B15). */
const ownTemplates = 'in own templates of the bootstrap; stock Envoys have no such tracer'

const tracing = record(
  {
    zipkin: record({ address: text() }),
    lightstep: only(ownTemplates, record({ address: text(), accessToken: text() })),
    datadog: record({ address: text() }),
    stackdriver: only(
      ownTemplates,
      record({ debug: flag, maxNumberOfAttributes: count, maxNumberOfAnnotations: count, maxNumberOfMessageEvents: count }),
    ),
    openCensusAgent: only(
      ownTemplates,
      record({ address: text(), context: list(oneOf('UNSPECIFIED', 'W3C_TRACE_CONTEXT', 'GRPC_BIN', 'CLOUD_TRACE_CONTEXT', 'B3')) }),
    ),
    customTags: map(customTag),
    maxPathTagLength: integer(0, 65_536),
    sampling: decimal(0, 100),
    tlsSettings,
  },
  (value, path, report) => {
    const { customTags = {} } = value
    rejectBeside(value, ['zipkin', 'lightstep', 'datadog', 'stackdriver', 'openCensusAgent'], path, report)
    for (const tag of Object.keys(customTags))
      if (!/^[\x21-\x7e]{1,256}$/.test(tag)) reject(report, `${path}.customTags`, `${JSON.stringify(tag.slice(0, 100))} is not the name of a tag`)
  },
)

const seconds = integer(0, 2_147_483)

/** The readiness probe of the application. Exactly one of its kinds must be given. */
const readinessProbe = record(
  {
    initialDelaySeconds: seconds,
    timeoutSeconds: seconds,
    periodSeconds: seconds,
    successThreshold: seconds,
    failureThreshold: seconds,
    httpGet: record({
      path: text(),
      port: required(integer(1, 65_535)),
      host: text(),
      scheme: text({ pattern: /^https?$/i, what: 'http or https', examples: ['http', 'HTTPS'] }),
      httpHeaders: list(record({ name: required(headerName), value: text() })),
    }),
    tcpSocket: record({ host: text(), port: required(integer(1, 65_535)) }),
    exec: record({ command: required(list(text(), { min: 1 })) }),
  },
  (probe, path, report) => {
    const given = [probe.httpGet, probe.tcpSocket, probe.exec].filter((way) => way !== undefined).length
    if (given !== 1) reject(report, path, 'needs exactly one of httpGet, tcpSocket and exec')
  },
)

/** The shape of a proxy's configuration, with the field names of `mesh.v1alpha1.ProxyConfig`. */
export const proxyConfigShape = record({
  configPath: text(),
  binaryPath: text(),
  customConfigFile: text(),
  proxyBootstrapTemplatePath: text(),
  serviceCluster: text(),
  drainDuration: duration(),
  parentShutdownDuration: duration(),
  terminationDrainDuration: duration(),
  discoveryAddress: text(),
  statsdUdpAddress: text(),
  proxyAdminPort: integer(0, 65_535),
  statusPort: integer(0, 65_535),
  controlPlaneAuthPolicy: oneOf('NONE', 'MUTUAL_TLS'),
  statNameLength: unused(integer(0, 100_000)),
  concurrency: integer(0, 1024),
  interceptionMode: oneOf('REDIRECT', 'TPROXY', 'NONE'),
  tracing,
  envoyAccessLogService: remoteService,
  envoyMetricsService: remoteService,
  proxyMetadata: map(text({ max: 1_048_576 })),
  runtimeValues: map(text()),
  extraStatTags: list(text()),
  proxyStatsMatcher: record({ inclusionPrefixes: list(text()), inclusionSuffixes: list(text()), inclusionRegexps: list(text()) }),
  gatewayTopology: record({
    numTrustedProxies: integer(0, 1000),
    forwardClientCertDetails: oneOf('UNDEFINED', 'SANITIZE', 'FORWARD_ONLY', 'APPEND_FORWARD', 'SANITIZE_SET', 'ALWAYS_FORWARD_ONLY'),
  }),
  meshId: text(),
  holdApplicationUntilProxyStarts: flag,
  availabilityZone: unused(text()),
  caCertificatesPem: unused(anything),
  connectionSettings: unused(anything),
  discoveryRefreshDelay: unused(duration()),
  envoyMetricsServiceAddress: unused(text(), 'envoyMetricsService has an address'),
  fileFlushInterval: unused(duration()),
  fileFlushMinSizeKb: unused(count),
  image: unused(anything),
  privateKeyProvider: unused(anything),
  proxyHeaders: unused(anything),
  sds: unused(anything),
  statsCompression: unused(flag),
  tracingServiceName: unused(text()),
  zipkinAddress: unused(text(), 'tracing.zipkin has an address'),
  readinessProbe,
})

/** The settings of a proxy in a document: every field is optional; durations in milliseconds. */
export type GivenProxyConfig = Read<typeof proxyConfigShape>

/** The defaults of a proxy's settings (of the agent's flags in the specification); durations in milliseconds. */
export const proxyDefaults = {
  configPath: './etc/mesh/proxy',
  binaryPath: '/usr/local/bin/envoy',
  serviceCluster: 'mesh-proxy',
  drainDuration: 45_000,
  parentShutdownDuration: 60_000,
  terminationDrainDuration: 5000,
  proxyAdminPort: 15_000,
  statusPort: 15_020,
  concurrency: 2,
  discoveryAddress: 'meshd.mesh-system.svc:15012',
  controlPlaneAuthPolicy: 'MUTUAL_TLS',
  tracing: { zipkin: { address: 'zipkin.mesh-system:9411' } },
  statNameLength: 189,
} as const
