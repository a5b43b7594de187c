/** The issuer of certificates for admitted requests: the own signer threads. An external one is in `external-issuer.ts`. */
import { isValidAt, type Validity } from '../../../src/ca/lifetime.ts'
import type { AuthoritySource } from './authority-source.ts'
import type { ActiveSigner, InForce } from './in-force.ts'
import type { Signing, SigningResult, WantedCertificate } from './signing.ts'

/**
 * The use of a certificate. Workload certificates and the serving certificates of this process may have different issuers and validity
 * limits.
 */
export type CertificateUse = 'workloads' | 'serving'

/** A request whose caller is authenticated and whose identity is determined. */
export interface AdmittedRequest extends Omit<WantedCertificate, 'grant'> {
  readonly use: CertificateUse
  /** Returns the validity of the certificate, within the limits of its issuer. Throws a LifetimeFault when there is none. */
  readonly validity: (within: Validity) => Validity
}

/** An issued certificate. */
export interface Made {
  /** PEM: leaf, intermediates, all distributed roots. */
  readonly chain: readonly string[]
  readonly serial: string
  /** Unix milliseconds. */
  readonly notAfter: number
  /** SHA-256 fingerprint of the root at the end of the chain. */
  readonly root: string
}

/** The reason why no certificate was issued. `replaced`: the signing authority is no longer in force. */
export type NotMade = Exclude<SigningResult, { serial: string }> | { readonly refused: 'replaced' }

/** Issues certificates for admitted requests. The implementation holds no private key in the authority's thread. */
export interface CertificateIssuer {
  /** Validity limits of certificates issued now; undefined while none can be issued. */
  within(use: CertificateUse): Validity | undefined
  make(request: AdmittedRequest): Promise<Made | NotMade>
}

/** Signs on the signer threads of this process, with the authority in force. */
export class OwnIssuer implements CertificateIssuer {
  readonly #signing: Signing
  readonly #source: Pick<AuthoritySource, 'inForce'>
  readonly #now: () => number

  /** `now` returns the time that counts for the authority, in Unix milliseconds. */
  constructor(signing: Signing, source: Pick<AuthoritySource, 'inForce'>, now: () => number) {
    this.#signing = signing
    this.#source = source
    this.#now = now
  }

  within(use: CertificateUse): Validity | undefined {
    return this.#source.inForce?.[use].within
  }

  /** The authority in force when the request's turn comes signs it, and the answer has the roots of that authority. */
  async make({ use, validity, ...wanted }: AdmittedRequest): Promise<Made | NotMade> {
    let granted: InForce | undefined
    const result = await this.#signing.sign({
      ...wanted,
      grant: () => {
        granted = this.#source.inForce
        if (!granted) return undefined
        const { by, within } = granted[use]
        return isValidAt(within, this.#now()) ? { by, ...validity(within) } : undefined
      },
    })
    if (!('serial' in result)) return result
    // The change may be a new stage of a rotation, in whose ledger a certificate of the previous stage must not be counted.
    if (!granted || granted !== this.#source.inForce) return { refused: 'replaced' }
    const { certificate, serial, notAfter } = result
    const { intermediates, root }: ActiveSigner = granted[use]
    return { chain: [certificate, ...(intermediates === '' ? [] : [intermediates]), granted.bundle.join('')], serial, notAfter, root }
  }
}
