/** The flags of `pilot-discovery` (docs/operation.md, "Flags"). */

import { longest } from '../config/variable.ts'
import { discoveryScopes } from '../logging/levels.ts'
import type { FlagTable } from './flag-table.ts'
import { loggingFlags } from './logging-flags.ts'

const orchestrator = 'there is no orchestrator client yet'
const webhooks = 'there are no webhooks yet'

/** The plugins that `--plugins` accepts, and one that it accepts although it is not implemented. */
export const plugins: readonly string[] = ['ext_authz', 'authn', 'authz']
export const unbuiltPlugin = 'metadata_exchange'

/** Logging flags of every command. */
export const discoveryLogging = loggingFlags(discoveryScopes)

/** Flags of every command of this binary. */
export const rootFlags = {
  ctrlz_address: {
    type: 'string',
    default: 'localhost',
    about: 'IP address the ControlZ introspection facility listens on; * means all addresses',
  },
  ctrlz_port: {
    type: 'uint16',
    default: 9876,
    range: [0, 65_535],
    about: 'IP port of the ControlZ introspection facility; 0 = none',
  },
  keepaliveInterval: {
    type: 'duration',
    default: '30s',
    range: ['1s', longest],
    about: 'interval after which, with no activity, the peer is pinged to check the transport',
  },
  keepaliveMaxServerConnectionAge: {
    type: 'duration',
    default: longest,
    range: ['1s', longest],
    about: 'maximum time a server connection stays open before a graceful close',
  },
  keepaliveTimeout: {
    type: 'duration',
    default: '10s',
    range: ['1ms', longest],
    about: 'after a keepalive ping, time waited for activity before the connection is closed',
  },
} as const satisfies FlagTable

/** Flags of `pilot-discovery discovery`. */
export const discoveryFlags = {
  allowUnreadableConfig: {
    type: 'switch',
    default: false,
    about:
      'becomes ready although files cannot be read at the first start, or contain documents that may be policies and cannot be identified: their content is not in force; without this flag the process waits until they are fixed or removed',
  },
  appNamespace: {
    type: 'string',
    char: 'a',
    default: '',
    about: 'comma-separated namespaces whose applications the controller manages; when unset, all namespaces are watched',
    notYet: orchestrator,
  },
  caCertFile: { type: 'string', default: '', about: 'file with the x509 server CA certificate; client certificates must come from it' },
  clusterID: { type: 'string', default: 'Orchestrator', about: 'ID of the cluster this instance resides in; takes precedence over CLUSTER_ID' },
  clusterRegistriesNamespace: {
    type: 'string',
    default: 'mesh-system',
    about: 'namespace of the ConfigMap storing cluster configs',
    notYet: orchestrator,
  },
  configDir: {
    type: 'string',
    default: '',
    about: 'directory watched for YAML config files; when set, the files are the config source instead of a CRD client',
  },
  domain: { type: 'string', default: 'cluster.local', about: 'DNS domain suffix' },
  grpcAddr: { type: 'string', default: ':15010', about: 'discovery service gRPC address' },
  httpAddr: { type: 'string', default: ':8080', about: 'discovery service HTTP address' },
  httpsAddr: { type: 'string', default: ':15017', about: 'injection and validation service HTTPS address', notYet: webhooks },
  orchconfig: {
    type: 'string',
    default: '',
    about: 'use an orchestrator configuration file instead of in-cluster configuration',
    notYet: orchestrator,
  },
  orchestratorApiBurst: {
    type: 'int',
    default: 160,
    range: [0, 2_147_483_647],
    about: 'maximum burst when throttling calls to the orchestrator API',
    notYet: orchestrator,
  },
  orchestratorApiQPS: {
    type: 'float32',
    default: 80,
    range: [0, 3.4e38],
    about: 'maximum QPS of calls to the orchestrator API',
    notYet: orchestrator,
  },
  meshConfig: { type: 'string', default: './etc/mesh/config/mesh', about: 'mesh configuration file; when unspecified a default mesh is used' },
  monitoringAddr: { type: 'string', default: ':15014', about: 'HTTP address for self-monitoring information' },
  namespace: {
    type: 'string',
    char: 'n',
    default: 'mesh-system',
    about: 'namespace where the controller resides; when unset, environment variable POD_NAMESPACE is used',
  },
  networksConfig: {
    type: 'string',
    default: '/etc/mesh/config/meshNetworks',
    about: 'mesh networks configuration file; when unspecified a default is used',
  },
  plugins: {
    type: 'slice',
    default: plugins,
    about:
      'comma-separated networking plugins to enable, in the order of their filters: ext_authz (CUSTOM policies), authn (tokens), authz (other policies)',
  },
  profile: {
    type: 'switch',
    default: false,
    about: 'enables profiling via web interface at host:port/debug/pprof',
    notYet: 'there is no profiling page yet',
  },
  registries: {
    type: 'slice',
    default: ['Orchestrator'],
    about: 'comma-separated platform service registries to read; choose from Orchestrator, Mock',
  },
  resync: { type: 'duration', default: '1m0s', range: ['0s', longest], about: 'controller resync interval', notYet: orchestrator },
  secureGRPCAddr: {
    type: 'string',
    default: ':15012',
    about: 'discovery service secured gRPC address; served when --tlsCertFile and --tlsKeyFile are given',
  },
  tlsCertFile: { type: 'string', default: '', about: 'file with the x509 server certificate' },
  tlsKeyFile: { type: 'string', default: '', about: 'file with the x509 private key matching --tlsCertFile' },
  'trust-domain': {
    type: 'string',
    default: '',
    about: 'domain identifying the system with SPIFFE; overrules trustDomain of the mesh configuration',
  },
  writers: { type: 'int', default: 0, range: [0, 256], about: 'threads that write to proxies; 0 = one a core' },
} as const satisfies FlagTable

/** Flags of `pilot-discovery token`. */
export const tokenFlags = {
  namespace: { type: 'string', char: 'n', default: '', about: 'namespace of the workload; required' },
  'service-account': { type: 'string', default: 'default', about: 'service account of the workload' },
  audience: { type: 'string', default: '', about: 'audience of the token; the first of TOKEN_AUDIENCES when not given' },
  ttl: { type: 'duration', default: '12h', range: ['1s', '8760h'], about: 'lifetime of the token' },
  output: {
    type: 'string',
    char: 'o',
    default: '',
    about: 'file to which the token is written, readable by this user only; it is printed when not given',
  },
} as const satisfies FlagTable
