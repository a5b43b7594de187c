/** Who a caller is, how that is asked, and the names of the mesh that decide it. */

/** A caller whose credential was verified. Plain data, without the credential. */
export interface Caller {
  /** SPIFFE ids, `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`; at least one. */
  readonly identities: readonly string[]
  readonly via: 'certificate' | 'token'
  /** The authenticator that accepted the credential, for logs. */
  readonly method: string
  /** When the credential expires, in Unix milliseconds. */
  readonly expiresAt: number
  /** Of a presented chain: SHA-256 fingerprint (hex) of its root. */
  readonly issuedRoot?: string
}

/** The question `authenticate`: whose token this is. */
export interface TokenQuestion {
  /** The token as the caller sent it, without `Bearer `; at most 16 KiB. */
  readonly token: string
  /** The call's metadata `clusterid`: the cluster that reviews the token. */
  readonly clusterId?: string
  /** The service that is called, `xds` unless said: the rule of `TOKEN_ISSUER` counts for the certificate authority alone. */
  readonly service?: 'ca' | 'xds' | 'pages'
}

/** The answer to {@link TokenQuestion}. */
export type TokenAnswer =
  | { readonly caller: Caller }
  | {
      /** Why no authenticator accepts the token: for the log, never for the client. */
      readonly refused: string
      /** The token may be good: keys to check it with could not be had, or too many tokens wait. The client is told `Unavailable`. */
      readonly unavailable?: true
    }

/** From the file watcher: the names of the mesh are these now. Told to each consumer when it is linked, and when one differs. */
export interface MeshNamesEvent {
  readonly type: 'MeshNamesChanged'
  /** Of identities: `--trust-domain`, else that of the mesh configuration. */
  readonly trustDomain: string
  readonly trustDomainAliases: readonly string[]
  /** Callers of this namespace may read what belongs to any namespace. */
  readonly rootNamespace: string
  /** Where proxies find this service, `<host>:<port>`. */
  readonly discoveryAddress: string
}

/** What `pilot-discovery token` is asked for. */
export interface TokenOrder {
  readonly namespace: string
  readonly account: string
  /** Empty for the first of `TOKEN_AUDIENCES`. */
  readonly audience: string
  /** How long the token is good for, in milliseconds. */
  readonly ttlMs: number
  /** The file that it is written to, for this user alone; empty when it is returned only. */
  readonly output: string
}

/** What an agent of this machine is given over the admin socket. */
export interface LocalToken {
  readonly token: string
  /** Roots of the mesh, PEM; empty where the service has no certificate authority. */
  readonly roots: string
}
