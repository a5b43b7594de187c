/** What the watcher of a cluster needs to connect, from the main thread, which alone loads the client library of the orchestrator. */

/** Where the configuration of a connection to a cluster is. */
export type ClusterOrigin =
  /** A file with contexts, clusters and users (`--orchconfig`). */
  | { readonly from: 'file'; readonly path: string }
  /** The service account of this process's pod: the address of the API server from variables, the rest from the files in `directory`. */
  | { readonly from: 'pod'; readonly host: string; readonly port: string; readonly directory: string }

/** How the API server of a cluster is reached, as of one moment: tokens and certificates are read again by whoever answers. */
export interface ClusterAccess {
  /** The address: `https://10.0.0.1:6443`, with a path where the server is behind one. */
  readonly server: string
  /** Certificates and key in PEM; undefined: the authorities of the system, and no client certificate. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** The name that the certificate of the server must have; undefined: that of the address. */
  readonly serverName: string | undefined
  /** Whether the certificate of the server is checked. */
  readonly verifies: boolean
  /** Headers of every request, among them the credential. */
  readonly headers: Readonly<Record<string, string>>
}

/** Configuration of the watcher of a cluster. */
export interface RegistryWatcherConfig {
  readonly features: object
  /** The domain of services, and the id of the cluster. */
  readonly domain: string
  readonly cluster: string
  /** The namespaces whose objects are followed (`--appNamespace`, and the own one); empty: all. */
  readonly namespaces: readonly string[]
  /** Requests a second, and at once (`--orchestratorApiQPS`, `--orchestratorApiBurst`). */
  readonly perSecond: number
  readonly burst: number
  /** The interval of audits in milliseconds (`--resync`); 0: there are none. */
  readonly auditMs: number
  readonly userAgent: string
}
