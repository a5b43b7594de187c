/** What the certificate authority is asked, and what it answers. Certificates and requests cross as PEM; private keys never do. */
import type { Caller } from './identity.ts'

/** Asks for the certificate of a workload (`signCertificate`). */
export interface CertificateRequest {
  /** A PKCS #10 request in PEM. */
  readonly csr: string
  /** The life that is asked for, in milliseconds; the default one when it is not above zero. */
  readonly ttlMs: number
  /** Who asks: the certificate gets this caller's identities, never those that the request names. */
  readonly caller: Caller
  /** Address of the caller, for the audit line. */
  readonly peer: string
}

/** Asks for the serving certificate of this process (`signServingCertificate`): only writers do, and the names are those of their request. */
export interface ServingCertificateRequest {
  /** A PKCS #10 request in PEM. */
  readonly csr: string
}

/** Why a certificate was not made, as `citadel_server_csr_sign_err_count` counts it. */
export type SignError = 'CA_NOT_READY' | 'CSR_ERROR' | 'TTL_ERROR' | 'CERT_GEN_ERROR' | 'UNKNOWN'

/** A certificate with its chain, or why there is none. */
export type CertificateAnswer =
  | {
      /** In PEM: the certificate, then the intermediate authorities as one text where there are any, then the bundle of roots. */
      readonly chain: readonly string[]
    }
  | {
      /** Of gRPC. */
      readonly code: number
      readonly message: string
      readonly error: SignError
      /** When the call is worth another try, in milliseconds from now. */
      readonly retryAfterMs?: number
    }

/** Of the certificate authority. */
export interface AuthorityConfig {
  /** A `Features` value. */
  readonly features: object
}
