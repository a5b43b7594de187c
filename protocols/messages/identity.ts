/** The identity of callers, the question for it, and the names of the mesh that it depends on. */

/** The cluster that vouches for an identity: its API server has reviewed the token, or had reviewed that with which the certificate was requested. */
export interface VouchingCluster {
  readonly id: string
  /** Whether it is the cluster of this process. An identity of another one is that of a workload, and has no rights beside (docs/identity.md, I9). */
  readonly isOwn: boolean
}

/** A caller whose credential was verified. Plain data, without the credential. */
export interface Caller {
  /** SPIFFE ids, `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`; at least one. */
  readonly identities: readonly string[]
  readonly via: 'certificate' | 'token'
  /** Undefined where the credential names none: it counts as one of the own cluster. */
  readonly cluster?: VouchingCluster
  /** The authenticator that accepted the credential, for logs. */
  readonly method: string
  /** The expiry of the credential, in Unix milliseconds. */
  readonly expiresAt: number
  /** For a certificate: its serial number, and the SHA-256 fingerprint of the root of its chain; hexadecimal, lower case. */
  readonly certificate?: { readonly serial: string; readonly root: string }
}

/** Who owns a token? */
export interface TokenQuestion {
  /** The token as the caller sent it, without `Bearer `; at most 16 KiB. */
  readonly token: string
  /** The metadata `clusterid` of the call: the cluster that reviews the token. */
  readonly clusterId?: string
  /** The service that is called, by default `xds`. The rule of `TOKEN_ISSUER` applies to `ca` only. */
  readonly service?: 'ca' | 'xds' | 'pages'
  /** The client that presents the token, for turns among clients: a key of its address (`clientKey`), not an identity. */
  readonly client?: string
}

/** The answer to {@link TokenQuestion}. */
export type TokenAnswer =
  | { readonly caller: Caller }
  | {
      /** The reason why no authenticator accepts the token; for the log only, never sent to the client. */
      readonly refused: string
      /**
       * The token may be valid: the keys to verify it could not be fetched, or too many tokens are waiting. The client is answered
       * `Unavailable`.
       */
      readonly unavailable?: true
    }

/** The question `reviewToken`: what does the API server of the cluster say of a token? */
export interface TokenReviewQuestion {
  readonly token: string
  /** The id of the cluster whose API server decides; undefined: the own one. */
  readonly cluster?: string | undefined
  /** The audiences one of which the token must be for; undefined: none is demanded. */
  readonly audiences: readonly string[] | undefined
  /** The `exp` of the token, in Unix milliseconds; undefined for a token that does not expire. */
  readonly expiresAt: number | undefined
  /** The client that presents the token, for turns among clients. */
  readonly client: string
}

/** The verdict of one authenticator on a token. */
export type TokenVerdict =
  | {
      readonly account: { readonly namespace: string; readonly account: string }
      /** The cluster whose API server has decided; undefined: it was a rule of this process. */
      readonly cluster?: VouchingCluster
      /** Until when the verdict counts, in Unix milliseconds. */
      readonly expiresAt: number
    }
  /** `unavailable`: it could not be decided. */
  | { readonly refused: string; readonly unavailable: boolean }

/** The keys of a token rule, which are public. */
export interface TokenKeySet {
  /** A JSON Web Key Set; undefined when there is none. */
  readonly keys: string | undefined
  /** Whether keys that are not there may be at the issuer: they could not be fetched or read. */
  readonly isUnknown: boolean
}

/** Sent by the authenticator to the writers: the keys of a token rule. Sent to each writer when it is linked and after each change. */
export interface TokenKeysEvent extends TokenKeySet {
  readonly type: 'TokenKeysChanged'
  /** The index of the rule. */
  readonly rule: number
}

/** The question `tokenKeys`: the keys of a token rule, for a token that waits for the first ones, or for newer ones (`renewed`). */
export interface TokenKeysQuestion {
  readonly rule: number
  readonly renewed: boolean
}

/** Sent by the push queue: the names of the mesh by the mesh configuration in force, of whichever source. Sent to each consumer when it is linked and after each change. */
export interface MeshNamesEvent {
  readonly type: 'MeshNamesChanged'
  /** The trust domain of identities: `--trust-domain`, else that of the mesh configuration. */
  readonly trustDomain: string
  readonly trustDomainAliases: readonly string[]
  /** Callers of this namespace may read what belongs to any namespace. */
  readonly rootNamespace: string
  /** The address at which proxies reach this service, `<host>:<port>`. */
  readonly discoveryAddress: string
  /** The actors of `configSources`, in their order: of Secrets of one name that of the first counts, after that of `--configDir`. */
  readonly sources?: readonly string[]
  /** What Ingresses are served by; only the watcher of a cluster needs it. */
  readonly ingress?: IngressSettings
  /** The certificates that are kept in Secrets; only their keeper needs them. */
  readonly certificates?: readonly WantedCertificates[]
}

/** A certificate for DNS names of the mesh configuration, and the Secret in which it is kept. Either may be empty: then it is not kept. */
export interface WantedCertificates {
  readonly secretName: string
  readonly dnsNames: readonly string[]
}

/** The settings of Ingresses of the mesh configuration. */
export interface IngressSettings {
  /** Which Ingresses count: none, those of its classes, or also those without a class. */
  readonly mode: 'OFF' | 'DEFAULT' | 'STRICT'
  /** The class in annotations. */
  readonly className: string
  /** The Service whose addresses are those of Ingresses, and the label of its gateways; empty: not set. */
  readonly service: string
  readonly selector: string
}

/** Options of `pilot-discovery token`. */
export interface TokenOrder {
  readonly namespace: string
  readonly account: string
  /** Empty: the first of `TOKEN_AUDIENCES`. */
  readonly audience: string
  /** The lifetime of the token in milliseconds. */
  readonly ttlMs: number
  /** The file to which the token is written, readable by this user only; empty: the token is only returned. */
  readonly output: string
}

/** The token and roots that an agent on this machine gets over the admin socket. */
export interface LocalToken {
  readonly token: string
  /** Roots of the mesh, PEM; empty if the service has no certificate authority. */
  readonly roots: string
}
