/** Certificates that a signer of the orchestrator signs (`ORCH_SIGNER`): through its CertificateSigningRequests (docs/certificates.md, E1 to E9). */

/** What a certificate is for, which is in the name of its CertificateSigningRequest. */
export type SignedFor = 'workload' | 'serving' | 'dns'

/** Asks the main thread to have a certificate signed (`signBySigner`). */
export interface SignerOrder {
  readonly use: SignedFor
  /** A PKCS #10 request in PEM, whose names the signer copies. */
  readonly csr: string
  /** The lifetime that is asked for, in milliseconds; 0: that of the signer. */
  readonly lifeMs: number
  /** Who asks, for turns among callers. */
  readonly client: string
}

/**
 * What came of it. `signed`: what the signer has put into the object, which is not checked yet; `refused`: it, or an approver, refuses;
 * `late`: nobody has signed before the deadline; `busy`: too many wait; `away`: the API server cannot be reached, or forbids it.
 */
export type SignerAnswer =
  | { readonly outcome: 'signed'; readonly certificate: string }
  | { readonly outcome: 'refused' | 'late' | 'busy' | 'away'; readonly reason: string }

/** Asks the main thread to keep a Secret with a certificate of the mesh configuration, as the leader of a term. */
export interface CertificateOrder {
  readonly term: number
  readonly secretName: string
  readonly dnsNames: readonly string[]
}

/**
 * What came of it. `kept`: the Secret has a certificate that is good until `renewAt` (Unix milliseconds); `written`: it has a new one;
 * `foreign`: a Secret of that name is somebody else's; `lost`: the term is over.
 */
export type CertificateOutcome =
  | { readonly outcome: 'kept' | 'written'; readonly renewAt: number; readonly notAfter: number }
  | { readonly outcome: 'foreign' | 'failed'; readonly reason: string }
  | { readonly outcome: 'lost' }

/** Configuration of the keeper of certificates of the mesh configuration. */
export interface MeshCertificatesConfig {
  /** The signer; empty: none is set, and nothing can be signed. */
  readonly signer: string
}
