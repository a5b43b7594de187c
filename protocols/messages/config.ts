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

/** A gRPC server over TLS: where, and its certificate, key and the authorities of its clients as PEM. */
export interface SecureServer {
  readonly host: string
  readonly port: number
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
}

/** Of an XDS writer. */
export interface XdsWriterConfig {
  readonly features: object
  readonly host: string
  readonly port: number
  readonly secure: SecureServer | undefined
  /** How many writers share the port. */
  readonly writers: number
  /** This writer's number, from 0. */
  readonly index: number
  /** That of the push queue: writers take the numbers of resources that a class does not see off the sums that they are sent. */
  readonly versionKey: string
  /** Where the permits of all writers are counted. */
  readonly permits: SharedArrayBuffer
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  readonly maxConnectionAge: number
}

/** Of a watcher of configuration files. */
export interface FileWatcherConfig {
  readonly features: object
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
