/** What the watcher of a cluster needs to connect, from the main thread, which alone loads the client library of the orchestrator. */

/** Where the configuration of a connection to a cluster is. */
export type ClusterOrigin =
  /** A file with contexts, clusters and users (`--orchconfig`). */
  | { readonly from: 'file'; readonly path: string }
  /** Several such files, which are joined, and one of their contexts; empty: the current one. */
  | { readonly from: 'files'; readonly paths: readonly string[]; readonly context: string }
  /** The service account of this process's pod: the address of the API server from variables, the rest from the files in `directory`. */
  | { readonly from: 'pod'; readonly host: string; readonly port: string; readonly directory: string }

/** How the API server of a cluster is reached, as of one moment: tokens and certificates are read again by whoever answers. */
export interface ClusterAccess {
  /** The address: `https://10.0.0.1:6443`, with a path where the server is behind one. */
  readonly server: string
  /** The proxy in front of it, with its credential (`proxy-url`); undefined: there is none. */
  readonly proxy: string | undefined
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

/** What the mesh configuration and the networks of a cluster are read with. */
export interface ClusterSettings {
  /** The namespace of the control plane, in which their ConfigMap is. */
  readonly namespace: string
  /** Whether the process becomes ready without a setting that exists and cannot be used. */
  readonly allowUnreadable: boolean
  /** The directory that is read anyway (`--configDir`); empty: none. */
  readonly configDir: string
  /** Overrides the trust domain of the mesh configuration; empty: no override. */
  readonly trustDomain: string
}

/** The status of an Ingress that is to be written in a term of the leader. */
export interface IngressStatusOrder {
  readonly term: number
  readonly namespace: string
  readonly name: string
  /** The id of the Ingress: another one of the same name is left alone. */
  readonly uid: string
  /** IP addresses and host names. */
  readonly addresses: readonly string[]
}

/** Whether a status was written, need not be (the Ingress is gone, or another process leads), or could not be. */
export interface IngressStatusAnswer {
  readonly result: 'written' | 'needless' | 'failed'
  /** The reason why it was not written; empty if it was. */
  readonly reason: string
}

/** Configuration of the source that reads the configuration objects of a cluster (`configSources`, `orch://`). */
export interface ClusterSourceConfig extends RegistryWatcherConfig {
  /** The source as objects name it. */
  readonly source: string
}

/** Configuration of the watcher of a cluster. */
export interface RegistryWatcherConfig {
  readonly features: object
  /** The domain of services, and the id of the cluster. */
  readonly domain: string
  readonly cluster: string
  /** Whether it is another cluster than that of this process, which nothing waits for longer than `PILOT_REMOTE_CLUSTER_TIMEOUT`. */
  readonly isRemote?: boolean
  /** The namespaces whose objects are followed (`--appNamespace`, and the own one); empty: all. */
  readonly namespaces: readonly string[]
  /** Requests a second, and at once (`--orchestratorApiQPS`, `--orchestratorApiBurst`). */
  readonly perSecond: number
  readonly burst: number
  /** The interval of audits in milliseconds (`--resync`); 0: there are none. */
  readonly auditMs: number
  readonly settings: ClusterSettings
  /** Whether the ConfigMaps with the root certificates are followed. */
  readonly keepsRoots: boolean
  /** The namespace of the gateways that serve Ingresses. */
  readonly ingressNamespace: string
  readonly userAgent: string
  /** The time in milliseconds without a word of the server after which a kind counts as stale (`PILOT_ORCH_STALE_AFTER`). */
  readonly staleMs: number
}

/** A followed cluster: how it is connected and what is known of it. Durations are milliseconds. */
export interface ClusterStatus {
  readonly name: string
  /** The address of its API server; undefined: it has not been connected to yet. */
  readonly server: string | undefined
  /** How long the present connection has lasted; undefined: there is none. */
  readonly connectedMs: number | undefined
  /** The number of connections since the start, and why the last one ended. */
  readonly connections: number
  readonly lastError: string | undefined
  /** Whether all kinds that readiness waits for have been listed. */
  readonly isComplete: boolean
  /** Since when nothing was heard of the server, and which attempts fail; empty: nothing is wrong. */
  readonly trouble: string
  readonly kinds: readonly KindStatus[]
}

/** A key of a remote secret, and what became of the cluster that it names. */
export interface RemoteKey {
  /** The id of the cluster; empty with `secret`: remote secrets cannot be read. */
  readonly name: string
  /** The Secret: `<namespace>/<name>`. */
  readonly secret: string
  /** The actor that follows the cluster; empty: by this key it is not followed. */
  readonly actor: string
  /** Why it is not followed, not as its text says now, or not read whole yet; empty: nothing is wrong with it. */
  readonly trouble: string
  /** Whether what is known of the cluster is served. */
  readonly isHeld: boolean
}

/** A kind that is followed. Durations are milliseconds. */
export interface KindStatus {
  readonly kind: string
  /** Its name in RBAC rules. */
  readonly resource: string
  /** `paused` (before the next attempt), `paging` or `streaming` (a list), or `watching`. */
  readonly mode: string
  readonly objects: number
  /** The resource version that was reached; empty: everything is to be listed. */
  readonly version: string
  /** How long ago the server was last heard of it; undefined: never. */
  readonly ageMs: number | undefined
  /** Whether that is longer than `PILOT_ORCH_STALE_AFTER`. */
  readonly isStale: boolean
  /** Failed attempts, the reason of the last one and how long ago it was. */
  readonly failures: number
  readonly lastError: string | undefined
  readonly lastErrorMs: number | undefined
  /** Why the last comparison with a list failed; undefined: it did not. */
  readonly lastAuditError: string | undefined
  /** Objects that were added or changed, and removed. */
  readonly updates: number
  readonly deletes: number
  /** Lists that were read whole, comparisons with lists, and objects of which a watch had not told. */
  readonly lists: number
  readonly audits: number
  readonly repairs: number
}
