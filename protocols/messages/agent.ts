/** What the actors of the agent are told when they start. Plain data, without keys and tokens. */

/** Where certificates are asked for. */
export interface AuthorityAddress {
  readonly host: string
  readonly port: number
  /** Without TLS, for authorities on this machine. */
  readonly isPlain: boolean
  /** Whose certificate is expected. */
  readonly serverName: string
  /** File of the roots that the authority is verified with, read for each call; undefined for those of the system. */
  readonly rootsFile: string | undefined
  /** Whether these roots alone count. Otherwise those of the last answer count beside them. */
  readonly isPinned: boolean
}

/** The server of secrets and the client of the certificate authority. */
export interface SecretAgentConfig {
  /** Path of the unix socket on which secrets are served. */
  readonly socket: string
  readonly authority: AuthorityAddress
  /** File of the token that the authority is sent, read for each call; none is sent when this is undefined. */
  readonly tokenFile: string | undefined
  /** Metadata `clusterid` of the calls; empty for none. */
  readonly clusterId: string
  /** The name that requests ask for, a SPIFFE id; none is asked for when this is undefined. */
  readonly identity: string | undefined
  readonly key: { readonly type: 'rsa' | 'ec'; readonly format: 'traditional' | 'pkcs8' }
  /** Life that is asked for, in seconds. */
  readonly ttlSeconds: number
  /** Share of a certificate's life that is left when it is renewed. */
  readonly graceRatio: number
}

/** The answer to `state`. */
export interface SecretState {
  /** When the certificate that is served expires, in Unix milliseconds, and whom it names; undefined while there is none. */
  readonly notAfter: number | undefined
  readonly identity: string | undefined
  /** Why the last call to the authority failed; undefined when it succeeded. */
  readonly fault: string | undefined
}
