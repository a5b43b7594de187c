/**
 * Every environment variable that `pilot-discovery` reads, once: type, default, range, meaning. The environment is read at start into one
 * `Features` value, and nowhere else. Variables of parts that are not implemented are in `unbuilt-variables.ts` and not in `Features`, so
 * that code cannot read a variable that is declared to have no effect. `without` is for variables that code reads for a part that does not
 * exist yet.
 */
import { canonicalEnvironment } from '../names/mesh-names.ts'
import { unbuiltVariables } from './unbuilt-variables.ts'
import { type DeclaredVariable, defaultOf, longest, readVariable, type ValuesOf } from './variable.ts'

/** The table of variables. */
export const variables = {
  ENABLE_ADMIN_ENDPOINTS: {
    type: 'boolean',
    default: false,
    meaning: 'when true, dangerous admin endpoints are exposed on the debug interface; not recommended in production',
  },
  ENABLE_DEBUG_ON_HTTP: {
    type: 'boolean',
    default: true,
    meaning: 'when false, the debug interface is not enabled over HTTP (recommended in production)',
  },
  ENABLE_DEBUG_ON_LOOPBACK: {
    type: 'automatic',
    default: 'auto',
    meaning:
      'when true, callers of this machine see the debug pages over HTTP without a token; auto is true while no TLS material is configured (--tlsCertFile, or an authority in ROOT_CA_DIR)',
  },
  ENABLE_LEGACY_FSGROUP_INJECTION: {
    type: 'boolean',
    default: true,
    meaning:
      'when true, the pod fsGroup is set to 1337 on injection; required for orchestrator version 1.18 and older unless JWT_POLICY is first-party-jwt',
  },
  ENABLE_NATIVE_SIDECARS: {
    type: 'automatic',
    default: 'auto',
    meaning:
      'when true, injection runs the agent as a container that starts before the others of its pod and ends after them; auto is true where the API server has version 1.33 or newer',
  },
  INJECTION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'mesh-sidecar-injector',
    meaning: 'name of the mutating webhook configuration to patch when the installer command-line tool is not used',
  },
  INJECT_ENABLED: { type: 'boolean', default: true, meaning: 'enables the mutating webhook handler' },
  MESHD_ADMIN_SOCKET: {
    type: 'string',
    default: './var/run/mesh/admin.sock',
    meaning: 'unix socket of the server for its operator (mode 0600, in a directory with mode 0700); "pilot-discovery request" connects to it',
  },
  MESHD_ENABLE_SDS_SERVER: {
    type: 'boolean',
    default: true,
    meaning:
      'when true, the discovery component serves SDS for credentialName secrets instead of the proxy; for security PILOT_ENABLE_XDS_IDENTITY_CHECK must also be true',
  },
  MESHD_REPLICA_ADDRESS: {
    type: 'string',
    default: '',
    meaning:
      'address (host:port) at which this replica of discovery is asked by the others of its revision, so that answers about proxies cover those of all replicas; empty: they cover its own',
  },
  MESHD_SPREAD_RATE: {
    type: 'integer',
    default: 5,
    range: [0, 1000],
    meaning:
      'connections that this replica ends a second at most while it serves more than its share of the proxies of all replicas, so that they come back at others (docs/operation.md, R3); 0: none; without MESHD_REPLICA_ADDRESS it has no effect',
  },
  MESH_DEFAULT_REQUEST_TIMEOUT: { type: 'duration', default: '0s', range: ['0s', longest], meaning: 'default HTTP and gRPC request timeout' },
  MESH_GPRC_MAXRECVMSGSIZE: {
    type: 'integer',
    default: 4194304,
    range: [1, 2147483647],
    meaning: 'maximum receive buffer size of a gRPC stream, in bytes',
  },
  MESH_GPRC_MAXSTREAMS: { type: 'integer', default: 100000, range: [1, 4294967295], meaning: 'maximum number of concurrent gRPC streams' },
  PILOT_DEBOUNCE_AFTER: {
    type: 'duration',
    default: '100ms',
    range: ['0s', longest],
    meaning:
      'delay added to config/registry events for debouncing; a push is delayed at least this long; if changes keep arriving, delay continues up to PILOT_DEBOUNCE_MAX',
  },
  PILOT_DEBOUNCE_MAX: {
    type: 'duration',
    default: '10s',
    range: ['0s', longest],
    meaning: 'maximum time to wait for events while debouncing; if events arrive without a break for this long, a push is triggered',
  },
  PILOT_DISTRIBUTION_HISTORY_RETENTION: {
    type: 'duration',
    default: '1m0s',
    range: ['0s', longest],
    meaning: 'duration for which old versions of distributed configuration are tracked',
  },
  PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING: {
    type: 'boolean',
    default: true,
    meaning: 'assigns meaningful nonces to each proxy configuration message and lets the debug interface show which proxy has which configuration',
  },
  PILOT_ENABLE_EDS_DEBOUNCE: { type: 'boolean', default: true, meaning: 'includes EDS pushes in debouncing: fewer pushes, possibly delayed' },
  PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: {
    type: 'boolean',
    default: false,
    meaning:
      'sends endpoints of headless services over EDS so the sidecar load-balances among pods; enable if applications reach all services through an HTTP proxy port in the sidecar',
  },
  PILOT_ENABLE_FLOW_CONTROL: {
    type: 'boolean',
    default: false,
    meaning: 'waits for completion of a receive operation before executing a push; useful with high push-request rates per gateway',
  },
  PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS: {
    type: 'boolean',
    default: true,
    meaning: 'generates an outbound listener per pod of a headless service; disable if headless services have many pods',
  },
  PILOT_ENABLE_MESH_TAGS: { type: 'boolean', default: true, meaning: 'trace spans generated by the proxy include mesh-specific tags' },
  PILOT_ALLOW_METADATA_CERTS_DR_MUTUAL_TLS: {
    type: 'boolean',
    default: false,
    meaning: 'when true, certificates in metadata may override destination-rule certificates in MUTUAL TLS mode; for migration only, to be removed',
  },
  PILOT_ENABLE_CRD_VALIDATION: {
    type: 'boolean',
    default: false,
    meaning:
      'objects of the orchestrator that cannot be used are removed, other than policies, and do not keep their last good state (docs/operation.md, F19)',
  },
  PILOT_ENABLE_MYSQL_FILTER: {
    type: 'boolean',
    default: false,
    meaning:
      'puts mysql_proxy before tcp_proxy on MySQL ports, at proxies that say that they have it (contrib builds of Envoy; docs/resources.md, L18)',
  },
  PILOT_ENABLE_REDIS_FILTER: {
    type: 'boolean',
    default: false,
    meaning: 'routes commands of Redis ports by their keys (redis_proxy), with consistent hashing over the endpoints',
  },
  PILOT_ENABLE_THRIFT_FILTER: { type: 'boolean', default: false, meaning: 'routes requests of Thrift ports one by one (thrift_proxy)' },
  PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: {
    type: 'boolean',
    default: false,
    meaning: 'gateways get clusters only of the destinations of their VirtualServices, and of the extension providers',
  },
  PILOT_ENABLE_LOOP_BLOCKER: {
    type: 'boolean',
    default: true,
    meaning:
      'the proxy is configured to block traffic sent directly to the inbound/outbound ports (15001/15006), preventing loops; the option is to be removed and always on from release 1.9',
  },
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND: {
    type: 'boolean',
    default: true,
    meaning: 'protocol sniffing on inbound listeners whose port protocol is unspecified or unsupported',
  },
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND: {
    type: 'boolean',
    default: true,
    meaning: 'protocol sniffing on outbound listeners whose port protocol is unspecified or unsupported',
  },
  PILOT_ENABLE_VIRTUAL_SERVICE_DELEGATE: { type: 'boolean', default: true, meaning: 'when false, virtual service delegates are not supported' },
  PILOT_ENABLE_ANALYSIS: {
    type: 'boolean',
    default: false,
    meaning: 'runs analyzers and writes analysis errors to the Status field of mesh resources (docs/analysis.md)',
  },
  PILOT_ENABLE_XDS_CACHE: { type: 'boolean', default: true, meaning: 'caches XDS responses' },
  PILOT_ENDPOINT_TELEMETRY_LABEL: {
    type: 'boolean',
    default: true,
    meaning: 'adds telemetry metadata to Endpoint resources, consumed by the telemetry filter',
  },
  PILOT_FLOW_CONTROL_TIMEOUT: {
    type: 'duration',
    default: '15s',
    range: ['0s', longest],
    meaning: 'if set, maximum time a push is delayed; depends on PILOT_ENABLE_FLOW_CONTROL',
  },
  PILOT_HTTP10: { type: 'boolean', default: false, meaning: 'allows HTTP 1.0 on outbound HTTP listeners for legacy applications' },
  PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT: {
    type: 'duration',
    default: '1s',
    range: ['0s', longest],
    meaning: 'protocol detection timeout of an inbound listener',
  },
  PILOT_INITIAL_FETCH_TIMEOUT: {
    type: 'duration',
    default: '0s',
    range: ['0s', longest],
    meaning: 'initial_fetch_timeout for configuration; when reached without a response, the proxy continues its init phase',
  },
  PILOT_PUSH_THROTTLE: { type: 'integer', default: 100, range: [1, 2147483647], meaning: 'maximum number of concurrent pushes' },
  PILOT_SCOPE_GATEWAY_TO_NAMESPACE: {
    type: 'boolean',
    default: false,
    meaning: 'a gateway workload selects only gateway resources of its own namespace',
  },
  PILOT_SIDECAR_ENABLE_INBOUND_TLS_V2: {
    type: 'boolean',
    default: true,
    meaning: 'server-side TLS version TLSv1_2 and strong cipher suites enforced',
  },
  PILOT_SIDECAR_USE_REMOTE_ADDRESS: { type: 'boolean', default: false, meaning: 'sets useRemoteAddress to true on sidecar outbound listeners' },
  PILOT_SKIP_VALIDATE_TRUST_DOMAIN: {
    type: 'boolean',
    default: false,
    meaning: 'skips checking that the peer is in the same trust domain when mTLS is on in the authentication policy',
  },
  PILOT_TRACE_SAMPLING: {
    type: 'number',
    default: 1,
    range: [0, 100],
    meaning: 'mesh-wide trace sampling percentage, range 0.0 to 100.0, precision 0.01',
  },
  PILOT_XDS_CACHE_SIZE: {
    type: 'integer',
    default: 20000,
    range: [-2147483648, 1000000],
    meaning: 'maximum XDS cache entries; a value <= 0 means no upper bound',
  },
  PILOT_XDS_CACHE_STATS: { type: 'boolean', default: false, meaning: 'collects XDS cache efficiency metrics' },
  PILOT_XDS_SEND_TIMEOUT: {
    type: 'duration',
    default: '5s',
    range: ['0s', longest],
    meaning: 'timeout for sending XDS configuration to proxies; after it the push is discarded',
  },
  PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: {
    type: 'duration',
    default: '20m',
    range: ['100ms', longest],
    meaning: 'how often the key sets of RequestAuthentications are fetched again',
  },
  XDS_AUTH: { type: 'boolean', default: true, meaning: 'authenticates XDS clients' },
  PILOT_ENABLE_XDS_IDENTITY_CHECK: {
    type: 'boolean',
    default: true,
    meaning: 'authorizes XDS clients so they act only as namespaces they have permission for',
  },
  MESHD_CUSTOM_HOST: {
    type: 'string',
    default: '',
    meaning: 'custom host names, separated by commas, for which the discovery component signs the server certificate',
  },
  PILOT_CERT_PROVIDER: { type: 'string', default: 'meshd', meaning: 'provider of the DNS certificate' },
  PILOT_ENABLE_ORCH_SELECT_WORKLOAD_ENTRIES: {
    type: 'boolean',
    default: true,
    meaning: 'orchestrator services with selectors select workload entries with matching labels',
  },
  PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: {
    type: 'boolean',
    default: false,
    meaning:
      'creates WorkloadEntries from WorkloadGroups when workloads connect that name their group (AUTO_REGISTER_GROUP), and deletes them when these are gone; without a cluster it has no effect',
  },
  PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: {
    type: 'boolean',
    default: false,
    meaning:
      'health checks of WorkloadEntries: an entry with the annotation proxy.mesh.io/health-checks-enabled: "true" takes traffic only while the condition Healthy of its status is True; into entries that were registered automatically what the agent reports is written',
  },
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: {
    type: 'duration',
    default: '10s',
    range: ['0s', longest],
    meaning:
      'how long a workload that was registered automatically may be disconnected from all discovery instances before its WorkloadEntry is deleted',
  },
  PILOT_WORKLOAD_ENTRY_MAX_PER_ACCOUNT: {
    type: 'integer',
    default: 1000,
    range: [0, 1_000_000],
    meaning:
      'the most WorkloadEntries that are registered automatically for the WorkloadGroups of one service account; further workloads are refused; 0: any number',
  },
  PILOT_USE_ENDPOINT_SLICE: {
    type: 'boolean',
    default: true,
    meaning:
      'uses EndpointSlices instead of Endpoints as the source of endpoints; false reads Endpoints, which have at most 1,000 addresses of a service and one address family',
  },
  PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: {
    type: 'boolean',
    default: true,
    meaning: 'service entries with selectors select pods from the cluster',
  },
  ORCH_INGRESS_NS: { type: 'string', default: '', meaning: 'namespace of the gateways that serve Ingresses; empty: that of this process' },
  POD_NAME: {
    type: 'string',
    default: '',
    meaning: 'name of this process in elections (the holder of its Leases); empty: the name of its machine, which in a cluster is that of its pod',
  },
  POD_NAMESPACE: { type: 'string', default: 'mesh-system', meaning: 'namespace of this process, where --namespace does not say it' },
  POD_UID: {
    type: 'string',
    default: '',
    meaning:
      'UID of the pod POD_NAME of this process, which the Lease of this replica is owned by, so that it goes with the pod; empty, or with --orchconfig: it is owned by nobody',
  },
  PILOT_XDS_IDENTITY_STREAMS: {
    type: 'integer',
    default: 10000,
    range: [1, 2147483647],
    meaning: 'XDS streams that one identity may have open at a time, over all connections of the secured port',
  },
  PILOT_XDS_IDENTITY_CLASSES: {
    type: 'integer',
    default: 1000,
    range: [1, 2147483647],
    meaning: 'classes of proxies, each with configuration of its own, that the streams of one identity may belong to at a time',
  },
  PILOT_XDS_MAX_PROXIES: {
    type: 'integer',
    default: 0,
    range: [0, 2147483647],
    meaning:
      'proxies that this process serves at most; the stream of a further one ends with UNAVAILABLE, and its next connection may reach another replica; 0: no limit',
  },
  PILOT_XDS_CREDENTIAL_GRACE: {
    type: 'duration',
    default: '30s',
    range: ['0s', longest],
    meaning:
      'how long a stream stays open after the certificate or token of its client has expired; it then ends at a random time within the same period, so that clients do not reconnect together',
  },
  PILOT_ACTOR_DEADLINE: {
    type: 'duration',
    default: '10s',
    range: ['1s', longest],
    meaning: 'how long a part (actor) of the service may leave the watchdog unanswered before it is ended and restarted',
  },
  PILOT_ENABLE_STATUS: {
    type: 'boolean',
    default: false,
    meaning: 'updates the CRD Status field of all mesh resources with reconciliation status',
  },
  PILOT_STATUS_BURST: { type: 'integer', default: 500, range: [0, 2147483647], meaning: 'burst rate of status updates when status is enabled' },
  PILOT_STATUS_QPS: {
    type: 'number',
    default: 100,
    range: [0, 1000000000],
    meaning: 'QPS of status updates when status is enabled; 0 means no limit',
  },
  PILOT_ORCH_STALE_AFTER: {
    type: 'duration',
    default: '5m',
    range: ['1s', longest],
    meaning:
      'how long the API server may send nothing about a kind of objects before the kind counts as stale, which is logged, in the body of /ready and in metrics; bookmarks come about once a minute',
  },
  PILOT_REMOTE_CLUSTER_TIMEOUT: {
    type: 'duration',
    default: '30s',
    range: ['0s', '1h'],
    meaning: 'how long readiness waits for another cluster that a remote secret names; the service goes on without it then (docs/operation.md, J5)',
  },
  MESHD_HELD_CLUSTER_TIMEOUT: {
    type: 'duration',
    default: '30m',
    range: ['0s', longest],
    meaning:
      'how long readiness waits for another cluster that ready replicas have and this one has not read, or may not read, so that a restart takes no endpoints from proxies (docs/operation.md, J5); no longer than PILOT_REMOTE_CLUSTER_TIMEOUT: as for others',
  },
  EXTERNAL_MESHD: {
    type: 'boolean',
    default: false,
    meaning:
      'when true, one discovery instance controls remote clusters including the CA: it writes the root certificates and the CA bundles of injection webhooks there (docs/operation.md, J10)',
  },
  USE_REMOTE_CERTS: {
    type: 'boolean',
    default: false,
    meaning:
      'loads the CA certificates from the Secret cacerts of the cluster also where the state is in a directory, as that of an external discovery component is (docs/certificates.md, A6)',
  },
  PILOT_REMOTE_CLUSTER_MAX_OBJECTS: {
    type: 'integer',
    default: 200_000,
    range: [1, 2147483647],
    meaning: 'the number of objects of another cluster that are kept; further ones are left out, which is told (docs/operation.md, J9)',
  },
  PILOT_REMOTE_CLUSTER_MAX_BYTES: {
    type: 'integer',
    default: 1_073_741_824,
    range: [1_048_576, 1_099_511_627_776],
    meaning:
      'the memory in bytes, as estimated, of the objects of another cluster that are kept; further ones are left out, which is told (docs/operation.md, J9)',
  },
  PILOT_JWKS_ALLOWED_ADDRESSES: {
    type: 'string',
    default: '',
    meaning:
      'exceptions to the rule that key sets are not fetched from loopback, link-local, metadata and other special addresses: addresses or ranges, separated by commas',
  },
  ENABLE_CA_SERVER: { type: 'boolean', default: true, meaning: 'when false, no CA server is created in the discovery component' },
  CITADEL_SELF_SIGNED_CA_CERT_TTL: {
    type: 'duration',
    default: '87600h0m0s',
    range: ['1s', longest],
    meaning: 'TTL of the self-signed CA root certificate',
  },
  CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: {
    type: 'integer',
    default: 2048,
    range: [2048, 16384],
    meaning: 'RSA key size of self-signed CA certificates',
  },
  CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: {
    type: 'boolean',
    default: true,
    meaning: 'when true, a jitter delays the start of the root cert rotator by a back-off time in seconds that is below the root cert check interval',
  },
  CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: {
    type: 'duration',
    default: '1h0m0s',
    range: [`-${longest}`, longest],
    meaning:
      'interval at which the self-signed CA checks root certificate expiry and rotates it; zero or negative disables checking and rotation; suggested to be larger than 10 minutes',
  },
  CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: {
    type: 'integer',
    default: 20,
    range: [0, 100],
    meaning: 'grace period percentile of the self-signed root certificate',
  },
  DEFAULT_WORKLOAD_CERT_TTL: {
    type: 'duration',
    default: '24h0m0s',
    range: ['1s', longest],
    meaning: 'default TTL of issued workload certificates; applied when the client sets a non-positive TTL in the CSR',
  },
  MAX_WORKLOAD_CERT_TTL: { type: 'duration', default: '2160h0m0s', range: ['1s', longest], meaning: 'maximum TTL of issued workload certificates' },
  EXTERNAL_CA: {
    type: 'string',
    default: '',
    meaning: 'external CA integration type; permitted values MESHD_RA_ORCHESTRATOR_API or MESHD_RA_MESH_API',
  },
  ORCH_SIGNER: { type: 'string', default: '', meaning: 'orchestrator CA signer type; valid from orchestrator version 1.18' },
  ROOT_CA_DIR: { type: 'string', default: './etc/cacerts', meaning: 'location of a local or mounted CA root' },
  MESHD_CA_SIGNERS: {
    type: 'integer',
    default: 0,
    range: [0, 256],
    meaning: 'threads that sign certificates; 0 means half of the cores, at least one',
  },
  MESH_POLICY_OPT_OUTS: {
    type: 'string',
    default: '',
    meaning:
      'policy checks to disable, separated by commas: each makes policies stricter than an earlier release; /debug/policyz lists all checks and the objects that they concern',
  },
  MESH_DOMAIN: {
    type: 'string',
    default: 'mesh.io',
    meaning: 'domain of mesh-owned API groups, labels and annotations; istio.io is accepted as an alias of it',
  },
  JWT_POLICY: { type: 'string', default: 'third-party-jwt', meaning: 'JWT validation policy' },
  REQUIRE_3P_TOKEN: {
    type: 'boolean',
    default: false,
    meaning: 'when true, orchestrator default tokens without audience are rejected; when false they are accepted',
  },
  TOKEN_AUDIENCES: {
    type: 'string',
    default: 'mesh-ca',
    meaning: 'comma-separated audiences checked in the JWT before a certificate is issued; a token matching any one is accepted',
  },
  TOKEN_ISSUER: { type: 'string', default: '', meaning: 'OIDC token issuer; when set, used to check tokens' },
  AUDIENCE: { type: 'string', default: '', meaning: 'expected audience in tokens' },
  SPIFFE_BUNDLE_ENDPOINTS: {
    type: 'string',
    default: '',
    meaning:
      'mapping of trust domains to SPIFFE bundle endpoints (compliant with the SPIFFE Bundle Endpoint standard); the root certificate fetched from each endpoint verifies client certificates of that trust domain; not needed for roots issued by the discovery component or web-PKI roots; format <trust_domain> then a pipe character then <endpoint_url>, tuples separated by two pipe characters',
  },
  ORCHESTRATOR_SERVICE_HOST: { type: 'string', default: '', meaning: 'orchestrator service host, set automatically when running in-cluster' },
  ORCHESTRATOR_SERVICE_PORT: { type: 'string', default: '443', meaning: 'orchestrator service port, set automatically when running in-cluster' },
  MESHD_CA_STATE_DIR: {
    type: 'string',
    default: './var/lib/mesh/ca',
    meaning:
      'directory of the state of the certificate authority and of the issuer of tokens, for this user alone; with a cluster and without this variable, the authority is in Secrets',
  },
  JWT_RULE: {
    type: 'string',
    isSecret: true,
    default: '',
    meaning:
      'issuers whose workload tokens are accepted: JSON object with issuer, audiences, and jwks_uri (https: or file:) or jwks (a key set), or a list of such objects; without keys, they are fetched from the issuer (OpenID discovery)',
  },
  REVISION: {
    type: 'string',
    default: '',
    meaning:
      'revision of this control plane: objects in files with another one in the label mesh.io/rev are left out; those without the label count for all',
  },
  MESH_METRICS_ANNOTATIONS: {
    type: 'string',
    default: '',
    meaning:
      'where the applications of injected pods have their metrics that do not say it in annotations: JSON object with port and path, both strings',
  },
  TERMINATION_DRAIN_DURATION_SECONDS: {
    type: 'integer',
    default: 5,
    range: [0, 2147483],
    meaning:
      'seconds for connections to end when the agent of an injected pod is to end, over terminationDrainDuration of the mesh and under that of the pod; 5, the default, changes nothing',
  },
  VALIDATION_ENABLED: { type: 'boolean', default: true, meaning: 'enables the configuration validation handler' },
  VALIDATION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'meshd-${namespace}',
    isEmptyGiven: true,
    meaning:
      'name of the ValidatingWebhookConfiguration whose certificates and failure policy are kept; ${namespace} is that of the control plane; empty: none is kept',
  },
  CLUSTER_ID: { type: 'string', default: 'Orchestrator', meaning: 'cluster and service registry this discovery instance belongs to' },
  PILOT_MOCK_SERVICES: { type: 'integer', default: 10, range: [0, 100000], meaning: 'number of services that the Mock registry generates' },
  PILOT_MOCK_ENDPOINTS: { type: 'integer', default: 3, range: [0, 100000], meaning: 'endpoints of each Mock service' },
  PILOT_MOCK_NAMESPACES: {
    type: 'integer',
    default: 2,
    range: [1, 100000],
    meaning: 'number of namespaces among which the Mock services are distributed',
  },
  PILOT_MOCK_PROXIES_PER_SERVICE: {
    type: 'integer',
    default: 1,
    range: [0, 100000],
    meaning: 'workload instances of each Mock service that a load client can impersonate',
  },
  PILOT_MOCK_CHURN_PER_SECOND: {
    type: 'number',
    default: 0,
    range: [0, 100000],
    meaning: 'number of endpoints that the Mock registry replaces each second',
  },
  PILOT_MOCK_LARGE_SERVICES: {
    type: 'integer',
    default: 0,
    range: [0, 100000],
    meaning: 'number of large services that the Mock registry generates beside the others; their workloads are replaced by rollouts',
  },
  PILOT_MOCK_LARGE_ENDPOINTS: { type: 'integer', default: 1000, range: [1, 100000], meaning: 'workloads of each large Mock service' },
  PILOT_MOCK_ROLLOUT_PER_SECOND: {
    type: 'number',
    default: 0,
    range: [0, 100000],
    meaning:
      'number of workloads of large Mock services that rollouts replace each second, one service after the other; a new workload is not ready at first, an old one terminates',
  },
  PILOT_MOCK_ROLLOUTS: {
    type: 'integer',
    default: 0,
    range: [0, 100000],
    meaning: 'number of rollouts of large Mock services after which their workloads stay; 0: without end',
  },
  PILOT_MOCK_SEED: {
    type: 'integer',
    default: 1,
    range: [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    meaning: 'seed of the Mock registry: equal seeds make equal services, equal churn and equal rollouts',
  },
} as const satisfies Record<string, DeclaredVariable>

/** The values of the variables; durations in milliseconds. Plain data, passed to every actor. */
export type Features = ValuesOf<typeof variables>

/** All variables of `pilot-discovery`, with and without effect. */
export const discoveryVariables: Readonly<Record<string, DeclaredVariable>> = { ...variables, ...unbuiltVariables }

/** Reads the variables from an environment. Throws one Error that names each variable with an invalid value, and the values it may have. */
export function readFeatures(environment: Readonly<Record<string, string | undefined>>): {
  readonly features: Features
  /** The names of the variables that are set. */
  readonly named: ReadonlySet<string>
  readonly warnings: string[]
} {
  const warnings: string[] = []
  const problems: string[] = []
  const values: Record<string, string | boolean | number> = {}
  const canonical = canonicalEnvironment(environment)
  const named = new Set(Object.keys(canonical).filter((name) => canonical[name]))
  for (const [name, variable] of Object.entries(discoveryVariables)) {
    const given = canonical[name] ?? ''
    const isEmptyGiven = 'isEmptyGiven' in variable && canonical[name] !== undefined
    const read = given === '' && !isEmptyGiven ? { value: defaultOf(variable) } : readVariable(variable, given)
    if ('expected' in read) problems.push(`environment variable ${name}: ${JSON.stringify(given.slice(0, 100))} is not ${read.expected}`)
    else if (Object.hasOwn(variables, name)) values[name] = read.value
    if (given !== '' && variable.without !== undefined) warnings.push(`environment variable ${name} has no effect: ${variable.without}`)
  }
  if (problems.length > 0) throw new Error(problems.join('; '))
  return { features: values as Features, named, warnings }
}
