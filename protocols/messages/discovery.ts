/** The flags of `pilot-discovery discovery`, parsed and checked. */
import type { Level } from './log.ts'

/** Options of the discovery service; durations in milliseconds, addresses as `host:port` or `:port`. */
export interface DiscoveryOptions {
  readonly grpcAddr: string
  /** The address on which configuration and certificates are served over TLS. */
  readonly secureGRPCAddr: string
  readonly tlsCertFile: string
  readonly tlsKeyFile: string
  readonly caCertFile: string
  readonly httpAddr: string
  /** The address on which webhooks are served over TLS, with a cluster; empty: they are served at `httpAddr`. */
  readonly httpsAddr: string
  readonly monitoringAddr: string
  /** The address of ControlZ; empty: disabled. */
  readonly ctrlzAddr: string
  /** Whether the process becomes ready although some configuration could not be read at its first start. */
  readonly allowUnreadableConfig: boolean
  /** Whether profiles of the threads are served. */
  readonly profile: boolean
  readonly configDir: string
  readonly meshConfig: string
  readonly networksConfig: string
  readonly domain: string
  /** Namespace of this process; empty if no flag sets it. */
  readonly namespace: string
  /** The namespaces whose objects are followed beside the own one (`--appNamespace`); empty: all. */
  readonly appNamespace: readonly string[]
  /** The cluster of this process, in place of `CLUSTER_ID`; empty if no flag sets it. */
  readonly clusterID: string
  readonly registries: readonly string[]
  /** The namespace of the remote secrets, which name other clusters. */
  readonly clusterRegistriesNamespace: string
  /** The file with the configuration of the connection to the cluster; empty: that of the pod of this process, if it runs in one. */
  readonly orchconfig: string
  /** Requests to the API server: at once, and a second; the latter 0: without limit. */
  readonly orchestratorApiBurst: number
  readonly orchestratorApiQPS: number
  /** The interval of comparisons with lists of the API server; 0: there are none. */
  readonly resync: number
  /** The policies that are enforced, in the order of their filters. */
  readonly plugins: readonly string[]
  /** Overrides the trust domain of the mesh configuration; empty: no override. */
  readonly trustDomain: string
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  readonly keepaliveMaxServerConnectionAge: number
  readonly writers: number
  /** Notices to log at start: flags without effect yet, and plaintext ports. */
  readonly notices: readonly { readonly level: Exclude<Level, 'none'>; readonly message: string }[]
  /** The flags as given, for the log. */
  readonly given: readonly string[]
}
