/**
 * Every environment variable that `pilot-discovery` reads, once: type, default, meaning (specification: overview 2.5 and
 * pilot-discovery 2.1). Read at start into one `Features` value; nothing else looks at the environment.
 */
import { parseDuration } from './duration.ts'

interface Variable {
  readonly type: 'string' | 'boolean' | 'integer' | 'number' | 'duration'
  /** In the variable's own notation; durations as Go writes them. */
  readonly default: string | boolean | number
  /** False while the part that the variable steers is not built: setting it is answered with a warning at start. */
  readonly effect: boolean
  readonly meaning: string
}

/** The table. */
export const variables = {
  CLUSTER_ID: { type: 'string', default: 'Orchestrator', effect: false, meaning: 'cluster and service registry this discovery instance belongs to' },
  ENABLE_ADMIN_ENDPOINTS: {
    type: 'boolean',
    default: false,
    effect: true,
    meaning: 'when true, dangerous admin endpoints are exposed on the debug interface; not recommended in production',
  },
  ENABLE_CA_SERVER: { type: 'boolean', default: true, effect: false, meaning: 'when false, no CA server is created in the discovery component' },
  ENABLE_DEBUG_ON_HTTP: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'when false, the debug interface is not enabled over HTTP (recommended in production)',
  },
  ENABLE_LEGACY_FSGROUP_INJECTION: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning:
      'when true, the pod fsGroup is set to 1337 on injection; required for orchestrator version 1.18 and older unless JWT_POLICY is first-party-jwt',
  },
  ENABLE_WASM_TELEMETRY: { type: 'boolean', default: false, effect: false, meaning: 'enables Wasm-based telemetry' },
  EXTERNAL_MESHD: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'when true, one discovery instance controls remote clusters including the CA',
  },
  INJECTION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'mesh-sidecar-injector',
    effect: false,
    meaning: 'name of the mutating webhook configuration to patch when the installer command-line tool is not used',
  },
  MESHD_CUSTOM_HOST: {
    type: 'string',
    default: '',
    effect: false,
    meaning: 'custom host name for which the discovery component signs the server certificate',
  },
  MESHD_ENABLE_SDS_SERVER: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning:
      'when true, the discovery component serves SDS for credentialName secrets instead of the proxy; for security PILOT_ENABLE_XDS_IDENTITY_CHECK must also be true',
  },
  MESH_DEFAULT_REQUEST_TIMEOUT: { type: 'duration', default: '0s', effect: true, meaning: 'default HTTP and gRPC request timeout' },
  MESH_GPRC_MAXRECVMSGSIZE: { type: 'integer', default: 4194304, effect: true, meaning: 'maximum receive buffer size of a gRPC stream, in bytes' },
  MESH_GPRC_MAXSTREAMS: { type: 'integer', default: 100000, effect: true, meaning: 'maximum number of concurrent gRPC streams' },
  MESH_METRICS_ANNOTATIONS: { type: 'string', default: '', effect: false, meaning: '' },
  JWT_POLICY: { type: 'string', default: 'third-party-jwt', effect: false, meaning: 'JWT validation policy' },
  ORCH_INGRESS_NS: { type: 'string', default: '', effect: false, meaning: '' },
  PILOT_ALLOW_METADATA_CERTS_DR_MUTUAL_TLS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'when true, certificates in metadata may override destination-rule certificates in MUTUAL TLS mode; for migration only, to be removed',
  },
  PILOT_CERT_PROVIDER: { type: 'string', default: 'meshd', effect: false, meaning: 'provider of the DNS certificate' },
  PILOT_DEBOUNCE_AFTER: {
    type: 'duration',
    default: '100ms',
    effect: true,
    meaning:
      'delay added to config/registry events for debouncing; a push is delayed at least this long; if changes keep arriving, delay continues up to PILOT_DEBOUNCE_MAX',
  },
  PILOT_DEBOUNCE_MAX: {
    type: 'duration',
    default: '10s',
    effect: true,
    meaning: 'maximum time to wait for events while debouncing; if events arrive without a break for this long, a push is triggered',
  },
  PILOT_DISTRIBUTION_HISTORY_RETENTION: {
    type: 'duration',
    default: '1m0s',
    effect: false,
    meaning: 'duration for which old versions of distributed configuration are tracked',
  },
  PILOT_ENABLED_SERVICE_APIS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'enables support for the orchestrator’s service-apis; experimental',
  },
  PILOT_ENABLE_ANALYSIS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'runs analyzers and writes analysis errors to the Status field of mesh resources',
  },
  PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'assigns meaningful nonces to each proxy configuration message and lets the debug interface show which proxy has which configuration',
  },
  PILOT_ENABLE_CRD_VALIDATION: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'validates CRDs when retrieved from the orchestrator cache; for deployments without galley',
  },
  PILOT_ENABLE_EDS_DEBOUNCE: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'includes EDS pushes in debouncing: fewer pushes, possibly delayed',
  },
  PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: {
    type: 'boolean',
    default: false,
    effect: true,
    meaning:
      'sends endpoints of headless services over EDS so the sidecar load-balances among pods; enable if applications reach all services through an HTTP proxy port in the sidecar',
  },
  PILOT_ENABLE_FLOW_CONTROL: {
    type: 'boolean',
    default: false,
    effect: true,
    meaning: 'waits for completion of a receive operation before executing a push; useful with high push-request rates per gateway',
  },
  PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'generates an outbound listener per pod of a headless service; disable if headless services have many pods',
  },
  PILOT_ENABLE_MESH_TAGS: { type: 'boolean', default: true, effect: true, meaning: 'trace spans generated by the proxy include mesh-specific tags' },
  PILOT_ENABLE_ORCH_SELECT_WORKLOAD_ENTRIES: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'orchestrator services with selectors select workload entries with matching labels',
  },
  PILOT_ENABLE_LOOP_BLOCKER: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning:
      'the proxy is configured to block traffic sent directly to the inbound/outbound ports (15001/15006), preventing loops; the option is to be removed and always on from release 1.9',
  },
  PILOT_ENABLE_MYSQL_FILTER: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'injects proxy.filters.network.mysql_proxy into the filter chain',
  },
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'protocol sniffing on inbound listeners whose port protocol is unspecified or unsupported',
  },
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'protocol sniffing on outbound listeners whose port protocol is unspecified or unsupported',
  },
  PILOT_ENABLE_REDIS_FILTER: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'injects proxy.filters.network.redis_proxy into the filter chain',
  },
  PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'service entries with selectors select pods from the cluster',
  },
  PILOT_ENABLE_STATUS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'updates the CRD Status field of all mesh resources with reconciliation status',
  },
  PILOT_ENABLE_THRIFT_FILTER: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'injects proxy.filters.network.thrift_proxy into the filter chain',
  },
  PILOT_ENABLE_VIRTUAL_SERVICE_DELEGATE: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'when false, virtual service delegates are not supported',
  },
  PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'auto-registers WorkloadEntries from associated WorkloadGroups when a workload connects over XDS',
  },
  PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'automatic health checks of WorkloadEntries based on the associated WorkloadGroup configuration',
  },
  PILOT_ENABLE_XDS_CACHE: { type: 'boolean', default: true, effect: true, meaning: 'caches XDS responses' },
  PILOT_ENABLE_XDS_IDENTITY_CHECK: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'authorizes XDS clients so they act only as namespaces they have permission for',
  },
  PILOT_ENDPOINT_TELEMETRY_LABEL: {
    type: 'boolean',
    default: true,
    effect: true,
    meaning: 'adds telemetry metadata to Endpoint resources, consumed by the telemetry filter',
  },
  PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: { type: 'boolean', default: false, effect: false, meaning: '' },
  PILOT_FLOW_CONTROL_TIMEOUT: {
    type: 'duration',
    default: '15s',
    effect: true,
    meaning: 'if set, maximum time a push is delayed; depends on PILOT_ENABLE_FLOW_CONTROL',
  },
  PILOT_HTTP10: { type: 'boolean', default: false, effect: true, meaning: 'allows HTTP 1.0 on outbound HTTP listeners for legacy applications' },
  PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT: {
    type: 'duration',
    default: '1s',
    effect: true,
    meaning: 'protocol detection timeout of an inbound listener',
  },
  PILOT_INITIAL_FETCH_TIMEOUT: {
    type: 'duration',
    default: '0s',
    effect: true,
    meaning: 'initial_fetch_timeout for configuration; when reached without a response, the proxy continues its init phase',
  },
  PILOT_PUSH_THROTTLE: { type: 'integer', default: 100, effect: true, meaning: 'maximum number of concurrent pushes' },
  PILOT_SCOPE_GATEWAY_TO_NAMESPACE: {
    type: 'boolean',
    default: false,
    effect: true,
    meaning: 'a gateway workload selects only gateway resources of its own namespace',
  },
  PILOT_SIDECAR_ENABLE_INBOUND_TLS_V2: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'server-side TLS version TLSv1_2 and strong cipher suites enforced',
  },
  PILOT_SIDECAR_USE_REMOTE_ADDRESS: {
    type: 'boolean',
    default: false,
    effect: true,
    meaning: 'sets useRemoteAddress to true on sidecar outbound listeners',
  },
  PILOT_SKIP_VALIDATE_TRUST_DOMAIN: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'skips checking that the peer is in the same trust domain when mTLS is on in the authentication policy',
  },
  PILOT_STATUS_BURST: { type: 'integer', default: 500, effect: false, meaning: 'burst rate of status updates when status is enabled' },
  PILOT_STATUS_QPS: { type: 'number', default: 100, effect: false, meaning: 'QPS of status updates when status is enabled' },
  PILOT_TRACE_SAMPLING: {
    type: 'number',
    default: 1,
    effect: true,
    meaning: 'mesh-wide trace sampling percentage, range 0.0 to 100.0, precision 0.01',
  },
  PILOT_USE_ENDPOINT_SLICE: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning:
      'uses EndpointSlices instead of Endpoints as the source of endpoints; the two are mutually exclusive; requires the orchestrator’s EndpointSlice controller',
  },
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: {
    type: 'duration',
    default: '10s',
    effect: false,
    meaning: 'time an auto-registered workload may stay disconnected from all discovery instances before its WorkloadEntry is cleaned up',
  },
  PILOT_XDS_CACHE_SIZE: { type: 'integer', default: 20000, effect: true, meaning: 'maximum XDS cache entries; a value <= 0 means no upper bound' },
  PILOT_XDS_CACHE_STATS: { type: 'boolean', default: false, effect: true, meaning: 'collects XDS cache efficiency metrics' },
  PILOT_XDS_SEND_TIMEOUT: {
    type: 'duration',
    default: '5s',
    effect: true,
    meaning: 'timeout for sending XDS configuration to proxies; after it the push is discarded',
  },
  POD_NAME: { type: 'string', default: '', effect: false, meaning: '' },
  REQUIRE_3P_TOKEN: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'when true, orchestrator default tokens without audience are rejected; when false they are accepted',
  },
  SPIFFE_BUNDLE_ENDPOINTS: {
    type: 'string',
    default: '',
    effect: false,
    meaning:
      'mapping of trust domains to SPIFFE bundle endpoints (compliant with the SPIFFE Bundle Endpoint standard); the root certificate fetched from each endpoint verifies client certificates of that trust domain; not needed for roots issued by the discovery component or web-PKI roots; format <trust_domain> then a pipe character then <endpoint_url>, tuples separated by two pipe characters',
  },
  TERMINATION_DRAIN_DURATION_SECONDS: {
    type: 'integer',
    default: 5,
    effect: false,
    meaning:
      'seconds allowed for connections to finish on agent shutdown; on SIGTERM or SIGINT the agent tells the active proxy to drain (no new connections, existing ones complete), sleeps for this duration, then kills remaining proxy processes',
  },
  TOKEN_AUDIENCES: {
    type: 'string',
    default: 'mesh-ca',
    effect: false,
    meaning: 'comma-separated audiences checked in the JWT before a certificate is issued; a token matching any one is accepted',
  },
  XDS_AUTH: { type: 'boolean', default: true, effect: false, meaning: 'authenticates XDS clients' },
  AUDIENCE: { type: 'string', default: '', effect: false, meaning: 'expected audience in tokens' },
  CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: {
    type: 'boolean',
    default: true,
    effect: false,
    meaning: 'when true, a jitter delays the start of the root cert rotator by a back-off time in seconds that is below the root cert check interval',
  },
  CITADEL_SELF_SIGNED_CA_CERT_TTL: { type: 'duration', default: '87600h0m0s', effect: false, meaning: 'TTL of the self-signed CA root certificate' },
  CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: { type: 'integer', default: 2048, effect: false, meaning: 'RSA key size of self-signed CA certificates' },
  CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: {
    type: 'duration',
    default: '1h0m0s',
    effect: false,
    meaning:
      'interval at which the self-signed CA checks root certificate expiry and rotates it; zero or negative disables checking and rotation; suggested to be larger than 10 minutes',
  },
  CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: {
    type: 'integer',
    default: 20,
    effect: false,
    meaning: 'grace period percentile of the self-signed root certificate',
  },
  DEFAULT_WORKLOAD_CERT_TTL: {
    type: 'duration',
    default: '24h0m0s',
    effect: false,
    meaning: 'default TTL of issued workload certificates; applied when the client sets a non-positive TTL in the CSR',
  },
  EXTERNAL_CA: {
    type: 'string',
    default: '',
    effect: false,
    meaning: 'external CA integration type; permitted values MESHD_RA_ORCHESTRATOR_API or MESHD_RA_MESH_API',
  },
  INJECT_ENABLED: { type: 'boolean', default: true, effect: false, meaning: 'enables the mutating webhook handler' },
  ORCH_SIGNER: { type: 'string', default: '', effect: false, meaning: 'orchestrator CA signer type; valid from orchestrator version 1.18' },
  ORCHESTRATOR_SERVICE_HOST: {
    type: 'string',
    default: '',
    effect: false,
    meaning: 'orchestrator service host, set automatically when running in-cluster',
  },
  MAX_WORKLOAD_CERT_TTL: { type: 'duration', default: '2160h0m0s', effect: false, meaning: 'maximum TTL of issued workload certificates' },
  POD_NAMESPACE: { type: 'string', default: 'mesh-system', effect: false, meaning: '' },
  REVISION: { type: 'string', default: '', effect: false, meaning: '' },
  ROOT_CA_DIR: { type: 'string', default: './etc/cacerts', effect: false, meaning: 'location of a local or mounted CA root' },
  TOKEN_ISSUER: { type: 'string', default: '', effect: false, meaning: 'OIDC token issuer; when set, used to check tokens' },
  USE_REMOTE_CERTS: {
    type: 'boolean',
    default: false,
    effect: false,
    meaning: 'tries to load CA certificates from a remote cluster; used for an external discovery component',
  },
  VALIDATION_ENABLED: { type: 'boolean', default: true, effect: false, meaning: 'enables the configuration validation handler' },
  VALIDATION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'meshd-${namespace}',
    effect: false,
    meaning: 'name of the validating webhook configuration to patch; empty skips patching with cluster-admin rights',
  },
  PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: {
    type: 'duration',
    default: '20m',
    effect: true,
    meaning: 'how often the key sets of RequestAuthentications are fetched again',
  },
  PILOT_JWKS_ALLOWED_ADDRESSES: {
    type: 'string',
    default: '',
    effect: true,
    meaning:
      'loopback, link-local, metadata and other special addresses or ranges, separated by commas, that key sets may be fetched from all the same',
  },
  MESH_DOMAIN: {
    type: 'string',
    default: 'mesh.io',
    effect: true,
    meaning: 'domain of mesh-owned API groups, labels and annotations; istio.io is accepted as an alias of it',
  },
  PILOT_MOCK_SERVICES: { type: 'integer', default: 10, effect: true, meaning: 'services that the Mock registry makes up' },
  PILOT_MOCK_ENDPOINTS: { type: 'integer', default: 3, effect: true, meaning: 'endpoints of each Mock service' },
  PILOT_MOCK_NAMESPACES: { type: 'integer', default: 2, effect: true, meaning: 'namespaces that the Mock services are spread over' },
  PILOT_MOCK_PROXIES_PER_SERVICE: {
    type: 'integer',
    default: 1,
    effect: true,
    meaning: 'workload instances of each Mock service that a load client can impersonate',
  },
  PILOT_MOCK_CHURN_PER_SECOND: { type: 'number', default: 0, effect: true, meaning: 'endpoints that the Mock registry replaces each second' },
  PILOT_MOCK_SEED: {
    type: 'integer',
    default: 1,
    effect: true,
    meaning: 'seed of the Mock registry: equal seeds make equal services and equal churn',
  },
} as const satisfies Record<string, Variable>

type VariableName = keyof typeof variables
type ValueOf<V extends Variable> = V['type'] extends 'string' ? string : V['type'] extends 'boolean' ? boolean : number

/** The values in force; durations in milliseconds. Plain data, handed to every actor. */
export type Features = { readonly [N in VariableName]: ValueOf<(typeof variables)[N]> }

/** Reads the table from an environment. A value that cannot be read keeps its default and is warned about. */
export function readFeatures(environment: Readonly<Record<string, string | undefined>>): { features: Features; warnings: string[] } {
  const warnings: string[] = []
  const values: Record<string, string | boolean | number> = {}
  for (const [name, variable] of Object.entries(variables) as [VariableName, Variable][]) {
    const fallback = variable.type === 'duration' ? (parseDuration(String(variable.default)) as number) : variable.default
    const given = environment[name]
    values[name] = fallback
    if (given === undefined || given === '') continue
    const value = readValue(variable.type, given)
    if (value === undefined)
      warnings.push(
        `environment variable ${name}: ${JSON.stringify(given.slice(0, 100))} is not a ${variable.type}, keeping the default ${variable.default}`,
      )
    else values[name] = value
    if (!variable.effect) warnings.push(`environment variable ${name} has no effect yet: the part it steers is not built`)
  }
  return { features: values as Features, warnings }
}

function readValue(type: Variable['type'], given: string): string | boolean | number | undefined {
  const number = Number(given)
  switch (type) {
    case 'string':
      return given
    case 'boolean':
      return /^(1|t|true)$/i.test(given) ? true : /^(0|f|false)$/i.test(given) ? false : undefined
    case 'integer':
      return Number.isSafeInteger(number) && given.trim() !== '' ? number : undefined
    case 'number':
      return Number.isFinite(number) && given.trim() !== '' ? number : undefined
    case 'duration':
      return parseDuration(given)
  }
}
