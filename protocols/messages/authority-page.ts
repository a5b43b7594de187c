/** The certificate authority as shown by pages and the `ca` command: public data, no keys. Times are ISO 8601. */

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

/** The page `ca`. */
export interface AuthorityPage {
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
  }
  readonly serving: readonly { readonly serial: string; readonly root: string; readonly issuedAt: string; readonly notAfter: string }[]
  /** The number of addresses that hold a certificate. */
  readonly holders: number
}

/** The page `ca_ledger`. */
export interface LedgerPage {
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
export type RotatePage =
  | { readonly from: string; readonly went: string; readonly forcedOver: readonly ShownBlocker[] }
  | { readonly refused: string; readonly page: AuthorityPage | undefined }
