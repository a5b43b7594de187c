/** The certificate authority as shown by pages and the `ca` command: public data, no keys. Times are ISO 8601. */

import type { ReplicaState } from './replicas.ts'

/** A certificate of the authority. */
export interface ShownCertificate {
  /** SHA-256 fingerprint. */
  readonly id: string
  readonly subject: string
  readonly serial: string
  readonly notBefore: string
  readonly notAfter: string
}

/** A root and its uses. */
export interface ShownRoot extends ShownCertificate {
  /** The uses of the root in the authority. */
  readonly uses: readonly (
    | 'signs workload certificates'
    | 'signs serving certificates'
    | 'sent to workloads'
    | 'accepted from clients'
    | 'replaced'
    | 'distrusted'
  )[]
  /** PEM. */
  readonly certificate: string
}

/** An identity that would or might be left without a valid certificate if the rotation advanced now. */
export interface ShownBlocker {
  readonly identity: string
  readonly proxies: readonly string[]
  readonly why: string
  readonly reason: string
  readonly until: string | undefined
}

/** The state of the authority (page `ca`). */
export interface AuthorityStatus {
  readonly source: 'own' | 'plugged-in'
  /** Where the state is kept. */
  readonly keptIn: string
  readonly roots: readonly ShownRoot[]
  /** The certificates between a leaf certificate and its root, signing certificate first; empty if the root signs directly. */
  readonly intermediates: { readonly workloads: readonly ShownCertificate[]; readonly serving: readonly ShownCertificate[] }
  /** The same as PEM: the signing certificate for workloads, and the chain that is sent after a certificate that it signed. */
  readonly signing: { readonly certificate: string; readonly chain: string }
  readonly rotation: {
    readonly stage: string
    readonly next: string
    readonly since: string | undefined
    /** The number of blockers, and the first of them. */
    readonly blocking: number
    readonly blockers: readonly ShownBlocker[]
    /** The number of proxies on the plaintext port, and the nodes of the first of them. */
    readonly plaintextProxies: number
    readonly plaintext: readonly string[]
    /** Why no stage begins, whoever blocks: the time is disputed, or the stored state cannot be used. */
    readonly waits: string | undefined
  }
  /** The wall clock, and the time that counts for the authority: they differ while the wall clock is disputed. */
  readonly clock: { readonly verdict: 'agreed' | 'unconfirmed' | 'disputed'; readonly wall: string; readonly believed: string }
  /** The authorities of earlier rotations whose keys are kept until the present root was seen in use. */
  readonly keptKeys: readonly ShownCertificate[]
  /** What is not valid now, by the wall clock; one sentence each. */
  readonly faults: readonly string[]
  readonly serving: readonly ShownServing[]
  /** The number of certificates of workloads that are held. */
  readonly holders: number
  /** The replicas whose proxies count as connected; empty where replicas do not ask each other. */
  readonly replicas: readonly ReplicaState[]
}

/** A serving certificate that was issued to a server of the process and has not expired. */
export interface ShownServing {
  readonly serial: string
  /** Fingerprint of its root. */
  readonly root: string
  readonly issuedAt: string
  readonly notAfter: string
  /** Whether it is the last one of a server that runs now. */
  readonly isServed: boolean
}

/** The page `ca_ledger`. */
export interface LedgerPage {
  /** As in {@link AuthorityStatus}. */
  readonly replicas: readonly ReplicaState[]
  readonly identities: readonly {
    readonly identity: string
    readonly proxies: readonly string[]
    readonly certificates: readonly {
      readonly address: string
      readonly serial: string
      readonly root: string
      readonly issuedAt: string
      readonly notAfter: string
    }[]
  }[]
}

/** The answer to `rotate=true`. */
export type RotateAnswer =
  | { readonly from: string; readonly went: string; readonly forcedOver: readonly ShownBlocker[] }
  | { readonly refused: string; readonly status: AuthorityStatus | undefined }

/** Who holds certificates of a root: the number of identities, and the first of them. */
export interface CutOff {
  readonly identities: number
  readonly holders: readonly {
    readonly identity: string
    /** Addresses that certificates were issued to. */
    readonly addresses: readonly string[]
    /** Nodes of proxies that are connected with such a certificate. */
    readonly proxies: readonly string[]
  }[]
}

/** The answer to `ca_distrust`: the root (its fingerprint) and who is cut off, or why it stays trusted. */
export type DistrustAnswer =
  | ({ readonly root: string; readonly subject: string; readonly isDry: boolean; readonly replicas: readonly ReplicaState[] } & CutOff)
  | { readonly refused: string }

/** The answer to `ca_trust`. */
export type TrustAnswer = { readonly root: string; readonly subject: string } | { readonly refused: string }

/** The answer to `ca_accept_time`: the wall clock (ISO 8601), and why it was disputed, if it was. */
export interface AcceptedTimeAnswer {
  readonly wall: string
  readonly dispute: string | undefined
}
