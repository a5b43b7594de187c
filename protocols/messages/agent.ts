/** What the actors of the agent are told when they start. Plain data, without keys and tokens. */
import type { ServerConnection } from './credentials.ts'

/** The server of secrets and the client of the certificate authority. */
export interface SecretAgentConfig {
  /** Path of the unix socket on which secrets are served. */
  readonly socket: string
  /** Where certificates are asked for. */
  readonly authority: ServerConnection
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
