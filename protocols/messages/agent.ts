/** Configuration and state of the actor that serves the agent's secrets. Plain data, without keys and tokens. */
import type { ServerConnection } from './credentials.ts'

/** Configuration of the server of secrets. */
export interface SecretAgentConfig {
  /** Path of the Unix socket on which secrets are served. */
  readonly socket: string
  /** Whether its directory may be a volume of an orchestrator, which other users could write to (docs/certificates.md, S1). */
  readonly allowVolumes: boolean
  /** The certificate from a certificate authority; undefined if only files are served. */
  readonly certificate: CertificateConfig | undefined
  /** How the token is fetched; undefined if it is mounted. */
  readonly fetcher: FetcherConfig | undefined
  /** Settings without effect, logged at start. */
  readonly notices: readonly string[]
  /** Directory of the files that replace the certificate and roots of the authority if they exist; undefined: none. */
  readonly mounted: string | undefined
  /** Files to which the served secrets are also written; undefined: none. */
  readonly output: OutputConfig | undefined
  /** How long files of secrets must be unchanged before they are read, in milliseconds. */
  readonly fileQuietMs: number
}

/** Configuration of the client of the certificate authority. */
export interface CertificateConfig {
  /** The certificate authority. */
  readonly authority: ServerConnection
  /** What calls of a cloud's certificate service need; undefined for authorities that speak as the discovery service does. */
  readonly cloud: CloudAuthority | undefined
  /** The metadata `clusterid` of calls; empty: not sent. */
  readonly clusterId: string
  /** The SPIFFE id in certificate requests; undefined: none. */
  readonly identity: string | undefined
  readonly key: KeyKind
  /** The requested lifetime, in seconds. */
  readonly ttlSeconds: number
  /** The fraction of a certificate's lifetime that remains when it is renewed. */
  readonly graceRatio: number
  /** Directory in which the certificate is kept over a restart; undefined: it is not kept. */
  readonly keptIn: string | undefined
}

/** The certificate service of a cloud: how the token is exchanged for one that it accepts, and the zone of the workload. */
export interface CloudAuthority {
  readonly federatedUrl: string
  readonly audience: string
  /** Undefined when the URL of the cluster does not name it. */
  readonly zone: string | undefined
}

/** Kind of a private key, and the form of its PEM. */
export interface KeyKind {
  readonly type: 'rsa' | 'ec'
  readonly format: 'traditional' | 'pkcs8'
}

/** How tokens are fetched, and the file to which they are written. */
export type FetcherConfig = CloudFetcher | LocalFetcher

/** The identity token of a cloud machine, from its metadata server. */
export interface CloudFetcher {
  readonly from: 'cloud'
  /** `<host>` or `<host>:<port>`. */
  readonly metadataHost: string
  readonly audience: string
  readonly tokenFile: string
}

/** A token from the discovery service on this machine, over its admin socket, with the roots of the mesh. */
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
  /** Whether other users of the machine may read the files, including the key (docs/certificates.md, S9); otherwise only the agent's user may. */
  readonly isForAll: boolean
  /** File with the password of the key stores that are written beside the PEM files; undefined: none are written. */
  readonly passwordFile: string | undefined
}

/** The answer to `state`. */
export interface SecretState {
  /** The expiry of the authority's certificate in Unix milliseconds, and the identity in it; undefined if there is no certificate. */
  readonly notAfter: number | undefined
  readonly identity: string | undefined
  /** The reason why the last call to the authority failed; undefined if it succeeded. */
  readonly fault: string | undefined
}
