/** The flags of `pilot-discovery` (docs/operation.md, "Flags"). */

import { longest } from '../config/variable.ts'
import { discoveryScopes } from '../logging/levels.ts'
import { controlZ, meshConfigPath, registriesNamespace } from './defaults.ts'
import { duration, float32, int, list, text, toggle, uint16 } from './flags.ts'
import { loggingFlags } from './logging-flags.ts'

/** The plugins that `--plugins` accepts, and one that it accepts although it is not implemented. */
export const plugins: readonly string[] = ['ext_authz', 'authn', 'authz']
export const unbuiltPlugin = 'metadata_exchange'

/** Logging flags of every command. */
export const discoveryLogging = loggingFlags(discoveryScopes)

/** Flags of every command of this binary. */
export const rootFlags = {
  ctrlz_address: text({ default: controlZ.address, description: 'IP address the ControlZ introspection facility listens on; * means all addresses' }),
  ctrlz_port: uint16({ default: controlZ.port, range: [0, 65_535], description: 'IP port of the ControlZ introspection facility; 0 = none' }),
  keepaliveInterval: duration({
    default: '30s',
    range: ['1s', longest],
    description: 'interval after which, with no activity, the peer is pinged to check the transport',
  }),
  keepaliveMaxServerConnectionAge: duration({
    default: longest,
    range: ['1s', longest],
    description: 'maximum time a server connection stays open before a graceful close',
  }),
  keepaliveTimeout: duration({
    default: '10s',
    range: ['1ms', longest],
    description: 'after a keepalive ping, time waited for activity before the connection is closed',
  }),
}

/** Flags of `pilot-discovery discovery`. */
export const discoveryFlags = {
  allowUnreadableConfig: toggle({
    description:
      'becomes ready although files cannot be read at the first start, or contain documents that may be policies and cannot be identified: their content is not in force; without this flag the process waits until they are fixed or removed',
  }),
  appNamespace: list({
    char: 'a',
    default: [],
    description:
      'comma-separated namespaces whose applications the controller manages, beside that of the controller; when unset, all namespaces are watched',
  }),
  caCertFile: text({
    value: 'file',
    default: '',
    description: 'file with x509 CA certificates that client certificates may come from, beside those of the own authority; needs --tlsCertFile',
  }),
  clusterID: text({ default: 'Orchestrator', description: 'ID of the cluster this instance resides in; takes precedence over CLUSTER_ID' }),
  clusterRegistriesNamespace: text({ default: registriesNamespace, description: 'namespace of the Secrets that name other clusters of the mesh' }),
  configDir: text({
    value: 'directory',
    default: '',
    description: 'directory watched for YAML config files; when set, the files are the config source instead of a CRD client',
  }),
  domain: text({ default: 'cluster.local', description: 'DNS domain suffix' }),
  grpcAddr: text({ default: ':15010', description: 'discovery service gRPC address; empty: gRPC is served at --httpAddr, at a higher cost' }),
  httpAddr: text({ default: ':8080', description: 'discovery service HTTP address' }),
  httpsAddr: text({
    default: ':15017',
    description: 'injection and validation service HTTPS address; empty, or without a cluster: these are served at --httpAddr',
  }),
  orchconfig: text({ value: 'file', default: '', description: 'use an orchestrator configuration file instead of in-cluster configuration' }),
  orchestratorApiBurst: int({ default: 160, range: [0, 2_147_483_647], description: 'maximum burst when throttling calls to the orchestrator API' }),
  orchestratorApiQPS: float32({ default: 80, range: [0, 3.4e38], description: 'maximum QPS of calls to the orchestrator API; 0 = no limit' }),
  meshConfig: text({ value: 'file', default: meshConfigPath, description: 'mesh configuration file; when unspecified a default mesh is used' }),
  monitoringAddr: text({ default: ':15014', description: 'HTTP address for self-monitoring information' }),
  namespace: text({
    char: 'n',
    default: 'mesh-system',
    description: 'namespace where the controller resides; when unset, environment variable POD_NAMESPACE is used',
  }),
  networksConfig: text({
    value: 'file',
    default: '/etc/mesh/config/meshNetworks',
    description: 'mesh networks configuration file; when unspecified a default is used',
  }),
  plugins: list({
    value: 'ext_authz|authn|authz',
    default: plugins,
    description:
      'comma-separated networking plugins to enable, in the order of their filters: ext_authz (CUSTOM policies), authn (tokens), authz (other policies)',
  }),
  profile: toggle({ description: 'enables profiling via web interface at host:port/debug/pprof' }),
  registries: list({
    value: 'Orchestrator|Mock',
    default: ['Orchestrator'],
    description: 'comma-separated platform service registries to read; choose from Orchestrator, Mock',
  }),
  resync: duration({
    default: '1m0s',
    range: ['0s', longest],
    description: 'controller resync interval: how often what is known of the orchestrator is compared with lists of its API server; 0 = never',
  }),
  secureGRPCAddr: text({
    default: ':15012',
    description: 'discovery service secured gRPC address; with the certificate of --tlsCertFile, or one that the own authority signs; empty: none',
  }),
  tlsCertFile: text({ value: 'file', default: '', description: 'file with the x509 server certificate' }),
  tlsKeyFile: text({ value: 'file', default: '', description: 'file with the x509 private key matching --tlsCertFile' }),
  'trust-domain': text({ default: '', description: 'domain identifying the system with SPIFFE; overrules trustDomain of the mesh configuration' }),
  writers: int({ default: 0, range: [0, 256], description: 'threads that write to proxies; 0 = one a core' }),
}

/** Flags of `pilot-discovery token`. */
export const tokenFlags = {
  namespace: text({ char: 'n', default: '', description: 'namespace of the workload; required' }),
  'service-account': text({ default: 'default', description: 'service account of the workload' }),
  audience: text({ default: '', description: 'audience of the token; the first of TOKEN_AUDIENCES when not given' }),
  ttl: duration({ default: '12h', range: ['1s', '8760h'], description: 'lifetime of the token' }),
  output: text({
    value: 'file',
    char: 'o',
    default: '',
    description: 'file to which the token is written, readable by this user only; it is printed when not given',
  }),
  json: toggle({ description: 'prints the token, or the file that has it, as JSON, and errors too' }),
}
