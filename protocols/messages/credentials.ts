/** Servers that the agent calls, and the credentials for these calls. Plain data: paths of files, never keys or tokens. */

/** The address of a server: of discovery, or of a certificate authority. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Whether the connection uses no TLS; for servers on this machine. */
  readonly isPlain: boolean
  /** The name that the certificate of the server must have. */
  readonly serverName: string
}

/** The root certificates that verify a server, read for each connection. */
export interface RootsSource {
  /** PEM files, of which the first existing one is used. Undefined: the roots of the system. */
  readonly files: readonly string[] | undefined
  /** Whether only these roots are used. Otherwise those in the last response of the certificate authority are used as well. */
  readonly isPinned: boolean
  /** The file in which the roots of the certificate authority are kept; undefined if they are not kept. */
  readonly learned: string | undefined
}

/** PEM files of a client certificate and its key. */
export interface PairFiles {
  readonly chain: string
  readonly key: string
}

/**
 * Credentials of the agent for a server, and roots that verify the server. All files are read for each connection, since mounted files are
 * replaced over time.
 */
export interface CallCredentials {
  readonly roots: RootsSource
  /** The file of the token; undefined: no token is sent. */
  readonly tokenFile: string | undefined
  /** The client certificate, presented while both files exist; undefined: none. */
  readonly pair: PairFiles | undefined
}

/** A server and the credentials for it. */
export interface ServerConnection {
  readonly address: ServerAddress
  readonly credentials: CallCredentials
}
