/** What the actor of the agent's secrets is told when it starts, and answers. Plain data, without keys and tokens. */
import type { ServerConnection } from './credentials.ts'

/** The server of secrets. */
export interface SecretAgentConfig {
  /** Path of the unix socket on which secrets are served. */
  readonly socket: string
  /** The certificate that an authority issues; undefined where files alone are served. */
  readonly certificate: CertificateConfig | undefined
  /** How the token is fetched; undefined where somebody else mounts it. */
  readonly fetcher: FetcherConfig | undefined
  /** What of the settings has no effect: told at start. */
  readonly notices: readonly string[]
  /** Directory of the files that take the place of what the authority gives, when they are there; undefined for none. */
  readonly mounted: string | undefined
  /** Where what is served is also written; undefined for nowhere. */
  readonly output: OutputConfig | undefined
  /** How long files of secrets must be left alone before they are read, in milliseconds. */
  readonly fileQuietMs: number
}

/** The client of the certificate authority. */
export interface CertificateConfig {
  /** Where certificates are asked for. */
  readonly authority: ServerConnection
  /** Metadata `clusterid` of the calls; empty for none. */
  readonly clusterId: string
  /** The name that requests ask for, a SPIFFE id; none is asked for when this is undefined. */
  readonly identity: string | undefined
  readonly key: KeyKind
  /** Life that is asked for, in seconds. */
  readonly ttlSeconds: number
  /** Share of a certificate's life that is left when it is renewed. */
  readonly graceRatio: number
  /** Directory of what is kept over a restart; undefined where nothing is. */
  readonly keptIn: string | undefined
}

/** Kind of a private key, and the form of its PEM. */
export interface KeyKind {
  readonly type: 'rsa' | 'ec'
  readonly format: 'traditional' | 'pkcs8'
}

/** How tokens are fetched, and the file that they are written to. */
export type FetcherConfig = CloudFetcher | LocalFetcher

/** The identity token of a cloud's machine, from its metadata server. */
export interface CloudFetcher {
  readonly from: 'cloud'
  /** `<host>` or `<host>:<port>`. */
  readonly metadataHost: string
  readonly audience: string
  readonly tokenFile: string
}

/** A token of the discovery service of this machine, over its admin socket, with the roots of the mesh. */
export interface LocalFetcher {
  readonly from: 'local'
  /** Path of the socket. */
  readonly socket: string
  readonly namespace: string
  readonly account: string
  readonly tokenFile: string
  readonly rootsFile: string
}

/** Files for programs that read certificates themselves. */
export interface OutputConfig {
  readonly directory: string
  /** Whether all users of the machine may read them, the key too; otherwise the agent's own alone. */
  readonly isForAll: boolean
}

/** The answer to `state`. */
export interface SecretState {
  /** When the certificate that the authority issued expires, in Unix milliseconds, and whom it names; undefined while there is none. */
  readonly notAfter: number | undefined
  readonly identity: string | undefined
  /** Why the last call to the authority failed; undefined when it succeeded. */
  readonly fault: string | undefined
}
