/** Configuration of the discovery actors, handed over when they start. */

/** What nobody outside the process knows. */
export interface ProcessSecrets {
  /** Key of the sums that versions of route configurations and of types come from. */
  readonly versionKey: string
  /** A JSON Web Key Set of which nobody has a private key. */
  readonly lockedKeys: string
}

/** Of the push queue. */
export interface PushQueueConfig {
  /** A `Features` value. */
  readonly features: object
  readonly domain: string
  /** Overrules that of the mesh configuration, the default one included; an empty one does not. */
  readonly trustDomain: string
  /** Made by chance when the process starts, so that a push queue that is restarted makes the same versions again. */
  readonly secrets: ProcessSecrets
  /** Policies that are enforced, in order. */
  readonly plugins: readonly string[]
  /** Names of the source actors that must have said everything once before the first push. */
  readonly sources: readonly string[]
}

/** Where a writer listens for TLS. */
export interface SecurePortConfig {
  readonly host: string
  readonly port: number
  /** Actors that have to say what they trust (`TrustEvent`) before it is listened on. */
  readonly trustSources: readonly string[]
  /** Whether certificates are signed there. */
  readonly signs: boolean
  /**
   * Hosts, beside that of the mesh's discovery address, for which the writer has a certificate signed by the certificate authority of this
   * process. Undefined where it is told its certificate (`CertificateEvent`).
   */
  readonly ownHosts: readonly string[] | undefined
}

/** Of an XDS writer. */
export interface XdsWriterConfig {
  readonly features: object
  /** Where it listens in plain text. */
  readonly plain: { readonly host: string; readonly port: number }
  readonly secure: SecurePortConfig | undefined
  /** Whether whoever is on this machine may ask for client status and reflection in plain text. */
  readonly statusOnLoopback: boolean
  /** How many writers share the port. */
  readonly writers: number
  /** This writer's number, from 0. */
  readonly index: number
  /** That of the push queue: writers take the numbers of resources that a class does not see off the sums that they are sent. */
  readonly versionKey: string
  /** Where the permits of all writers are counted. */
  readonly permits: SharedArrayBuffer
  /** In milliseconds: silence after which a connection is asked for a sign of life, how long that may take, longest life. */
  readonly connections: { readonly keepaliveInterval: number; readonly keepaliveTimeout: number; readonly maxConnectionAge: number }
}

/** Of a watcher of configuration files. */
export interface FileWatcherConfig {
  readonly features: object
  /** Whether what cannot be read at the start is left out, and not waited for. */
  readonly allowUnreadable: boolean
  readonly configDir: string
  readonly meshConfig: string
  readonly networksConfig: string
  /** Overrules that of the mesh configuration; an empty one does not. */
  readonly trustDomain: string
}

/** Of the resolver of key sets. */
export interface JwksResolverConfig {
  readonly features: object
}

/** Of the Mock registry. */
export interface MockRegistryConfig {
  readonly features: object
  readonly domain: string
}
