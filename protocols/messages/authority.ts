/** Requests to the certificate authority and its answers. Certificates and requests are sent as PEM; private keys are never sent. */
import type { Caller } from './identity.ts'

/** Requests the certificate of a workload (`signCertificate`). */
export interface CertificateRequest {
  /** A PKCS #10 request in PEM. */
  readonly csr: string
  /** The requested lifetime in milliseconds; zero or less: the default. */
  readonly ttlMs: number
  /** The caller. The certificate gets the caller's identities, not those in the request. */
  readonly caller: Caller
  /** Address of the caller, for the audit log. */
  readonly peer: string
}

/**
 * Requests the serving certificate of this process (`signServingCertificate`). Only writers and webhooks send it; the certificate gets the names in the
 * request.
 */
export interface ServingCertificateRequest {
  /** A PKCS #10 request in PEM. */
  readonly csr: string
  /** Name of the actor that will serve with the certificate. */
  readonly server: string
}

/** The reason why no certificate was issued, a label of `citadel_server_csr_sign_err_count`. */
export type SignError = 'CA_NOT_READY' | 'CSR_ERROR' | 'TTL_ERROR' | 'CERT_GEN_ERROR' | 'UNKNOWN'

/** A certificate chain, or the reason why there is none. */
export type CertificateAnswer =
  | {
      /** PEM texts: the certificate; the intermediate authorities in one text, if there are any; the bundle of roots. */
      readonly chain: readonly string[]
    }
  | {
      /** A gRPC status code. */
      readonly code: number
      readonly message: string
      readonly error: SignError
      /** The delay after which a retry is worthwhile, in milliseconds. */
      readonly retryAfterMs?: number
    }

/** Configuration of the certificate authority. */
export interface AuthorityConfig {
  /** A `Features` value. */
  readonly features: object
  /** Where the state is: in `MESHD_CA_STATE_DIR`, or in Secrets of a namespace. */
  readonly place: StatePlace
  /** The namespace whose Secret `cacerts` is read where the state is in a directory; undefined: none is. */
  readonly pluggedNamespace?: string | undefined
}

/** Where the control plane keeps its state: in a directory, or in Secrets of a namespace, which replicas share. */
export type StatePlace = { readonly kind: 'directory' } | { readonly kind: 'secrets'; readonly namespace: string }
