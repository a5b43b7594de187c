/** Configuration of the discovery actors, passed to them when they start. */

/** Secrets of the process and of those that share its state directory, unknown to clients. */
export interface ProcessSecrets {
  /** The key of the sums from which versions of route configurations and of types are computed. */
  readonly versionKey: string
  /** A JSON Web Key Set of which nobody has a private key. */
  readonly lockedKeys: string
}

/** Configuration of the push queue. */
export interface PushQueueConfig {
  /** A `Features` value. */
  readonly features: object
  readonly domain: string
  /** Overrides the trust domain of the mesh configuration, including the default; empty: no override. */
  readonly trustDomain: string
  /** With the same secrets, a restarted push queue computes the same versions again. */
  readonly secrets: ProcessSecrets
  /** Whether there is a cluster, in whose Secrets certificates of the mesh configuration are kept; undefined: yes. */
  readonly hasCluster?: boolean
  /** The policies that are enforced, in order. */
  readonly plugins: readonly string[]
  /** Names of the source actors whose first replay must be finished before the first push. */
  readonly sources: readonly string[]
  /** Those of them that may give a mesh configuration, which the names of the mesh wait for; undefined: all. */
  readonly settingSources?: readonly string[]
  /** The `ConfigSource` values that count where the mesh configuration has no `configSources`. */
  readonly configSources?: readonly { readonly address: string }[]
  /**
   * The sources that an earlier push queue of this process had synced. Of the `configSources`, the first push waits for these only;
   * undefined: for all that the mesh configuration names before it.
   */
  readonly syncedBefore?: readonly string[] | undefined
}

/** The port on which a writer serves TLS. */
export interface SecurePortConfig {
  readonly host: string
  readonly port: number
  /** Actors that must have sent their roots (`TrustEvent`) before the port is opened. */
  readonly trustSources: readonly string[]
  /** Whether the port also serves certificate signing requests. */
  readonly signs: boolean
  /**
   * Hosts, besides that of the mesh's discovery address, for which the writer requests a certificate from the certificate authority of this
   * process. Undefined if the writer is sent its certificate (`CertificateEvent`).
   */
  readonly ownHosts: readonly string[] | undefined
}

/** Configuration of an XDS writer. */
export interface XdsWriterConfig {
  readonly features: object
  /** Where the writer takes connections in plain text: at an address, or from the main thread (`PassedListening`). */
  readonly plain: { readonly host: string; readonly port: number } | { readonly passedAt: string; readonly key: string }
  readonly secure: SecurePortConfig | undefined
  /** Whether clients on this machine may use client status and reflection in plain text. */
  readonly statusOnLoopback: boolean
  /** The number of writers that share the port. */
  readonly writers: number
  /** The index of this writer, from 0. */
  readonly index: number
  /** The key of the push queue: writers subtract the numbers of hidden resources from the sums that they are sent. */
  readonly versionKey: string
  /** The rules for workload tokens: a list of `TokenRule` values. Keys are those of the authenticator's rule with the same index. */
  readonly tokenRules: readonly object[]
  /** Whether there is a cluster whose API server reviews tokens. */
  readonly reviewsTokens: boolean
  /** Whether remote secrets name the other clusters whose callers are served. */
  readonly followsClusters: boolean
  /** The memory in which the permits of all writers are counted. */
  readonly permits: SharedArrayBuffer
  /** The memory in which all writers count their proxies. */
  readonly proxySlots: SharedArrayBuffer
  /** The memory in which all writers keep the addresses of clients that presented a credential. */
  readonly knownAddresses: SharedArrayBuffer
  /** In milliseconds: the idle time after which a connection is pinged, the timeout of the ping, and the maximum age of a connection. */
  readonly connections: { readonly keepaliveInterval: number; readonly keepaliveTimeout: number; readonly maxConnectionAge: number }
}

/** Configuration of a source that reads a directory (`configSources`). */
export interface DirectorySourceConfig {
  readonly features: object
  /** Whether files that cannot be read at start are skipped rather than waited for. */
  readonly allowUnreadable: boolean
  /** The directory; empty: there is none. */
  readonly configDir: string
  /** The source as objects and pages name it: `files`, or `fs:///<directory>`. */
  readonly source: string
}

/** Configuration of a source that is another control plane (`configSources`). */
export interface ControlPlaneSourceConfig {
  readonly features: object
  /** Whether the process becomes ready without what the other control plane has. */
  readonly allowUnreadable: boolean
  /** `xds://<host>:<port>`: also the source as objects and pages name it. */
  readonly address: string
  /** A `ConfigSourceTls` value. */
  readonly tlsSettings?: object
}

/** Configuration of the watcher of `--configDir` and of the settings files. */
export interface FileWatcherConfig extends DirectorySourceConfig {
  readonly meshConfig: string
  readonly networksConfig: string
  /** Overrides the trust domain of the mesh configuration; empty: no override. */
  readonly trustDomain: string
}

/** Configuration of the resolver of key sets. */
export interface JwksResolverConfig {
  readonly features: object
}

/** Configuration of the Mock registry. */
export interface MockRegistryConfig {
  readonly features: object
  readonly domain: string
}
