/**
 * Every environment variable that the agent reads, once: type, default, range, meaning. An invalid value only causes a warning, and the
 * default is used, as injected containers expect.
 */
import { defaultOf, longest, readVariable, type ValuesOf, type Variable } from './variable.ts'

/** The table of the agent's variables. */
export const agentVariables = {
  CALL_CREDENTIALS: {
    type: 'boolean',
    default: false,
    meaning:
      'uses the JWT directly instead of mTLS in calls of discovery; where the STS exchanges tokens, the proxy calls by itself with such a token',
  },
  CA_ADDR: { type: 'string', default: '', meaning: 'address of the SPIFFE certificate provider; the discovery address when empty' },
  CA_ROOT_CA: {
    type: 'string',
    default: '',
    meaning: 'file of the roots expected on the connection to the certificate provider; SYSTEM for those of the system',
  },
  CA_PROVIDER: {
    type: 'string',
    default: 'Citadel',
    meaning: 'name of the certificate provider: CloudCA for the service of the cloud; all others are called as the discovery service is',
  },
  CLOUD_ACCESS_TOKEN_URL: {
    type: 'string',
    default:
      'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/service-{project}@gcp-sa-meshdataplane.iam.gserviceaccount.com:generateAccessToken',
    meaning: 'where a federated token is exchanged for an access token; {project} stands for the number of the project',
  },
  CLOUD_CLUSTER_URL: {
    type: 'string',
    default: '',
    meaning: 'URL of the cloud cluster: audience of the tokens that are exchanged, and part of the node metadata',
  },
  CLOUD_FEDERATED_TOKEN_URL: {
    type: 'string',
    default: 'https://securetoken.googleapis.com/v1/identitybindingtoken',
    meaning: 'where the token of the workload is exchanged for a federated token',
  },
  CLOUD_METADATA: {
    type: 'string',
    default: '',
    meaning: 'cloud metadata separated by pipe characters, in the order PROJECT_ID, PROJECT_NUMBER, CLUSTER_NAME, CLUSTER_ZONE',
  },
  CREDENTIAL_FETCHER_TYPE: {
    type: 'string',
    default: '',
    meaning:
      'where the token is fetched: CloudComputeEngine for the metadata server of the machine, meshd for the discovery service of this machine; when empty it is mounted',
  },
  CREDENTIAL_IDENTITY_PROVIDER: {
    type: 'string',
    default: 'CloudComputeEngine',
    meaning: 'identity provider of credentials; CloudComputeEngine is the only one',
  },
  DNS_PROXY_ADDR: {
    type: 'string',
    default: 'localhost:15053',
    meaning: "address of the agent's DNS server, over UDP and TCP, where it captures DNS: localhost or an IP address, and a port",
  },
  ECC_SIGNATURE_ALGORITHM: {
    type: 'string',
    default: '',
    meaning: 'ECC signature algorithm used when generating private keys: ECDSA for P-256; RSA of 2048 bits when empty',
  },
  FILE_DEBOUNCE_DURATION: {
    type: 'duration',
    default: '100ms',
    range: ['0s', '1h'],
    meaning: 'delay between a change of certificate files and reading them',
  },
  FILE_MOUNTED_CERTS: {
    type: 'boolean',
    default: false,
    meaning: 'when true, certificates come from mounted files alone: no certificate provider is asked, and no token is sent to discovery',
  },
  GCE_METADATA_HOST: { type: 'string', default: '169.254.169.254', meaning: 'metadata server of the machine, <host> or <host>:<port>' },
  HOST_IP: { type: 'string', default: '', meaning: 'address of the node, put in place of $(HOST_IP) in addresses of the proxy configuration' },
  INSTANCE_IP: { type: 'string', default: '', meaning: 'IP address of the workload, the first in the addresses of its node' },
  JWT_POLICY: {
    type: 'string',
    default: 'third-party-jwt',
    meaning: 'which token the agent sends: third-party-jwt or first-party-jwt; none for any other value',
  },
  MESHD_ADMIN_SOCKET: {
    type: 'string',
    default: './var/run/mesh/admin.sock',
    meaning: 'admin socket of the discovery service of this machine, for CREDENTIAL_FETCHER_TYPE=meshd',
  },
  MESH_AGENT_KEEP_CONFIGURATION: {
    type: 'boolean',
    default: false,
    meaning:
      'when true, the last configuration of the proxy is kept in MESH_AGENT_STATE_DIR, for a proxy that starts while discovery cannot be reached',
  },
  MESH_AGENT_STATE_DIR: {
    type: 'string',
    default: './var/lib/mesh/data',
    meaning:
      'directory of the state that the agent keeps across restarts: the certificate with its key, the roots, and the name table of its DNS server',
  },
  MESH_BOOTSTRAP: { type: 'string', default: '', meaning: 'file of a Go template that the bootstrap of the proxy is made from' },
  MESH_BOOTSTRAP_OVERRIDE: { type: 'string', default: '', meaning: 'file with a configuration that the proxy merges over its bootstrap' },
  MESH_DELTA_XDS: { type: 'boolean', default: false, meaning: 'when true, the proxy asks discovery for differences instead of the whole state' },
  MESH_DOMAIN: { type: 'string', default: 'mesh.io', meaning: 'domain of mesh-owned annotations; istio.io is accepted as an alias of it' },
  MESH_META_CLUSTER_ID: { type: 'string', default: '', meaning: 'cluster of the workload, sent to discovery and the certificate provider' },
  MESH_META_DNS_CAPTURE: {
    type: 'boolean',
    default: false,
    meaning: 'when true, captures outgoing DNS packets on port 53 and redirects them to the agent on :15053',
  },
  MESH_METRICS_ANNOTATIONS: {
    type: 'string',
    default: '',
    meaning: "location of the application's metrics, which are merged with those of the sidecar: JSON object with path and port, both strings",
  },
  MESH_ORCH_APP_PROBERS: {
    type: 'string',
    default: '',
    meaning: 'probes of the application that the status server runs: JSON object from the path that serves a probe to the original probe',
  },
  ORCHESTRATOR_SERVICE_HOST: {
    type: 'string',
    default: '',
    meaning: 'set in workloads of an orchestrator: there all users may read the files of OUTPUT_CERTS',
  },
  OUTPUT_CERTS: {
    type: 'string',
    default: '',
    meaning: 'directory to which key, certificate and roots are written; when empty they are not written',
  },
  OUTPUT_CERTS_PASSWORD_FILE: {
    type: 'string',
    default: '',
    meaning:
      'file whose first line is the password of key.p12 and truststore.p12, which are written to OUTPUT_CERTS for Java; when empty they are not written',
  },
  PILOT_CERT_PROVIDER: {
    type: 'string',
    default: 'meshd',
    meaning: 'where the roots of the certificate provider are: orchestrator for those of the service account, custom for those in ./etc/certs',
  },
  PKCS8_KEY: { type: 'boolean', default: false, meaning: 'generates PKCS#8 private keys' },
  POD_NAME: { type: 'string', default: '', meaning: 'name of the workload' },
  POD_NAMESPACE: { type: 'string', default: '', meaning: 'namespace of the workload' },
  PROV_CERT: {
    type: 'string',
    default: '',
    meaning:
      'directory with provisioned certificates, for VMs: key.pem and cert-chain.pem authenticate the agent, root-cert.pem verifies discovery and provider',
  },
  PROXY_CONFIG: { type: 'string', default: '', meaning: 'proxy configuration in YAML or JSON; set by injection, gateways use file mounts' },
  PROXY_PROMETHEUS_PORT: { type: 'integer', default: 15_090, range: [1, 65_535], meaning: 'port of the listener of the proxy for its own metrics' },
  PROXY_STATUS_PORT: {
    type: 'integer',
    default: 15_021,
    range: [1, 65_535],
    meaning: 'port of the listener of the proxy in front of the status server',
  },
  PROXY_USER: { type: 'string', default: 'mesh-proxy', meaning: 'name of the user under which the proxy runs, whose traffic is not redirected' },
  PROXY_XDS_VIA_AGENT: {
    type: 'boolean',
    default: true,
    meaning: 'when true, the proxy asks the agent for its configuration, which relays it from discovery; otherwise it asks discovery itself',
  },
  SECRET_GRACE_PERIOD_RATIO: {
    type: 'number',
    default: 0.5,
    range: [0, 1],
    meaning: 'grace period ratio for certificate rotation: share of its life that is left when a certificate is renewed, at least a tenth',
  },
  SECRET_TTL: { type: 'duration', default: '24h0m0s', range: ['1s', longest], meaning: 'certificate lifetime requested by the agent' },
  SERVICE_ACCOUNT: { type: 'string', default: '', meaning: 'name of the service account of the workload' },
  TERMINATION_DRAIN_DURATION_SECONDS: {
    type: 'integer',
    default: 5,
    range: [0, 2147483],
    meaning:
      'seconds for connections to end when the agent is to end; where it is not set, terminationDrainDuration of the proxy configuration counts',
  },
  TRUST_DOMAIN: { type: 'string', default: 'cluster.local', meaning: 'trust domain for SPIFFE certificates' },
  XDS_AUTH_PROVIDER: {
    type: 'string',
    default: '',
    meaning: 'with gcp, the token for discovery is exchanged for a token of the cloud; other values have no effect',
  },
  XDS_ROOT_CA: {
    type: 'string',
    default: '',
    meaning: 'file of the roots expected on the connection to discovery; SYSTEM for those of the system',
  },
} as const satisfies Record<string, Variable>

/** The values of the variables; durations in milliseconds. */
export type AgentFeatures = ValuesOf<typeof agentVariables>

/** Reads the variables from an environment. A variable that is set to empty text is treated as an invalid value. */
export function readAgentFeatures(environment: Readonly<Record<string, string | undefined>>): { features: AgentFeatures; warnings: string[] } {
  const warnings: string[] = []
  const values: Record<string, string | boolean | number> = {}
  for (const [name, variable] of Object.entries<Variable>(agentVariables)) {
    const given = environment[name]
    const read = given === undefined ? { value: defaultOf(variable) } : readVariable(variable, given)
    if ('expected' in read)
      warnings.push(`environment variable ${name}: ${JSON.stringify(given?.slice(0, 100))} is not ${read.expected}; ${variable.default} is used`)
    values[name] = 'expected' in read ? defaultOf(variable) : read.value
  }
  return { features: values as AgentFeatures, warnings }
}
