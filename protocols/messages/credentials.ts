/** Servers that the agent calls, and with what both sides show who they are. Plain data: paths of files, never keys or tokens. */

/** A server: discovery, or a certificate authority. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Without TLS, for servers on this machine. */
  readonly isPlain: boolean
  /** Whose certificate is expected. */
  readonly serverName: string
}

/** Roots that a server is verified with, read for each connection. */
export interface RootsSource {
  /** Files in PEM: the first that is there counts. Undefined for the roots of the system. */
  readonly files: readonly string[] | undefined
  /** Whether these alone count; otherwise the roots of the last answer of the certificate authority count beside them. */
  readonly isPinned: boolean
  /** File in which the latter are kept; undefined where nothing is kept. */
  readonly learned: string | undefined
}

/** Files of a client certificate with its key, both PEM. */
export interface PairFiles {
  readonly chain: string
  readonly key: string
}

/** With what the agent shows a server who it is, and verifies it. Everything is read for each connection: those who mount files exchange them. */
export interface CallCredentials {
  readonly roots: RootsSource
  /** File of the token; none is sent when this is undefined. */
  readonly tokenFile: string | undefined
  /** A certificate that is presented while both files are there; none when this is undefined. */
  readonly pair: PairFiles | undefined
}

/** How a server is called. */
export interface ServerConnection {
  readonly address: ServerAddress
  readonly credentials: CallCredentials
}
