/** Who makes the certificates of requests that the authority has admitted: its own signers today, an external authority behind the same interface (EXTERNAL_CA). */
import type { Validity } from '../../../src/ca/lifetime.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { AuthoritySource } from './authority-source.ts'
import type { InForce, Signs } from './in-force.ts'
import type { Signing, SigningResult, WantedCertificate } from './signing.ts'

/** What a certificate is for: certificates of workloads and the serving certificates of this service may have different issuers and bounds. */
export type CertificateUse = 'workloads' | 'serving'

/** A request whose caller has been authenticated and whose identity is decided: what a registration authority hands on. */
export interface AdmittedRequest extends Omit<WantedCertificate, 'grant'> {
  readonly use: CertificateUse
  /** How long the certificate shall be valid, within what its issuer allows. Throws a LifetimeFault when that cannot be. */
  readonly validity: (within: Validity) => Validity
}

/** A certificate that was made. */
export interface Made {
  /** PEM: leaf, certificates between, all roots that are handed out. */
  readonly chain: readonly string[]
  readonly serial: string
  /** Unix milliseconds. */
  readonly notAfter: number
  /** The root that it leads to, as the ledger names it. */
  readonly root: string
}

/** Why none was made. `replaced`: what would have signed it is no longer in force. */
export type NotMade = Exclude<SigningResult, { serial: string }> | { readonly refused: 'replaced' }

/** Makes certificates of admitted requests. It holds no private key in the thread of the authority. */
export interface CertificateIssuer {
  /** Between which moments certificates that it makes now are valid; undefined while it cannot make any. */
  within(use: CertificateUse): Validity | undefined
  make(request: AdmittedRequest): Promise<Made | NotMade>
}

/** Signs on the threads of this process, with what is in force. */
export class OwnIssuer implements CertificateIssuer {
  readonly #signing: Signing
  readonly #source: Pick<AuthoritySource, 'inForce'>

  constructor(signing: Signing, source: Pick<AuthoritySource, 'inForce'>) {
    this.#signing = signing
    this.#source = source
  }

  within(use: CertificateUse): Validity | undefined {
    return this.#source.inForce?.[use].within
  }

  /** What signs is what is in force when its turn comes, and the answer holds what is in force with it. */
  async make({ use, validity, ...wanted }: AdmittedRequest): Promise<Made | NotMade> {
    let granted: InForce | undefined
    const result = await this.#signing.sign({
      ...wanted,
      grant: () => {
        granted = this.#source.inForce
        if (!granted) return undefined
        const { by, within } = granted[use]
        return within.notAfter <= wallClockMs() ? undefined : { by, ...validity(within) }
      },
    })
    if (!('serial' in result)) return result
    // What came into force meanwhile may be a stage of a rotation: a certificate of the stage before would count for it.
    if (!granted || granted !== this.#source.inForce) return { refused: 'replaced' }
    const { certificate, serial, notAfter } = result
    const { intermediates, root }: Signs = granted[use]
    return { chain: [certificate, ...(intermediates === '' ? [] : [intermediates]), granted.bundle.join('')], serial, notAfter, root }
  }
}
