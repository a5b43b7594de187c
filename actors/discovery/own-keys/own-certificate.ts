/**
 * The serving certificate of a writer where it is signed by the process's own certificate authority. The writer generates the key and
 * keeps it; only a signing request is sent to the authority (docs/identity.md, T11 and T12).
 */
import { generateKeyPair, type KeyObject, randomInt, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import ipaddr from 'ipaddr.js'
import type { CertificateAnswer, ServingCertificateRequest } from '../../../protocols/messages/authority.ts'
import type { ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { WantedName } from '../../../src/ca/signing-request.ts'
import type { Pauses } from '../../../src/model/back-off.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Renewal } from '../../runtime/renewal.ts'

/** Dependencies of {@link OwnCertificate}. */
export interface OwnCertificateParts {
  /** Asks the certificate authority for a signature. */
  sign(request: Pick<ServingCertificateRequest, 'csr'>): Promise<CertificateAnswer>
  /** Called with each new certificate to serve with. */
  use(certificate: ServingCertificate): void
  /** Called with the number of failures since the last success, and the reason of the last one. */
  failed(times: number, reason: string): void
  readonly log: ScopedLogger
}

/** The delays before the authority is asked again after a failure. */
const pauses: Pauses = { firstMs: 200, longestMs: 30_000 }
/** The shortest delay before a certificate is renewed, in milliseconds. */
const shortestMs = 30_000
/**
 * Share of a certificate's lifetime after which it is renewed, in thousandths. The value is random within the range, so that writers do
 * not renew at the same time.
 */
const renewal = { from: 500, to: 650 }

const newKeyPair = promisify(generateKeyPair)

/** A chain whose last element holds the roots, and the key of its leaf. */
interface Signed {
  readonly chain: readonly string[]
  readonly privateKey: KeyObject
}

/** Obtains a certificate once the hosts are known, and renews it before it expires or when the hosts or the authority's signing change. */
export class OwnCertificate {
  readonly #parts: OwnCertificateParts
  readonly #renewal: Renewal<Signed>
  #hosts: readonly string[] = []

  constructor(parts: OwnCertificateParts) {
    this.#parts = parts
    this.#renewal = new Renewal({
      pauses,
      obtain: () => this.#ask(),
      use: (signed) => this.#use(signed),
      failed: ({ message }, failures, waitMs) => {
        parts.log.warn(`the serving certificate was not signed: ${message}; trying again in ${waitMs} ms`)
        parts.failed(failures, message)
      },
    })
  }

  /** Sets the DNS names and addresses under which this process is reached. Requests a new certificate if they changed. */
  serve(hosts: readonly string[]): void {
    const all = [...new Set(hosts)]
    if (String(all) === String(this.#hosts)) return
    this.#hosts = all
    this.renew()
  }

  /** Requests a new certificate, if hosts are known: the authority's signing changed. */
  renew(): void {
    if (this.#hosts.length === 0) return
    this.#renewal.renewAnew()
    this.#renewal.start()
  }

  async #ask(): Promise<Signed> {
    const { makeSigningRequest } = await import('../../../src/ca/signing-request.ts')
    const { privateKey } = await newKeyPair('ec', { namedCurve: 'P-256' })
    const answer = await this.#parts.sign({ csr: makeSigningRequest(privateKey, this.#hosts.map(wantedName)) })
    if ('code' in answer) throw new Error(answer.message)
    return { chain: answer.chain, privateKey }
  }

  /** Puts a signed certificate into use. Returns the delay until its renewal in milliseconds. The roots are not served. */
  #use({ chain, privateKey }: Signed): number {
    const cert = chain.slice(0, -1).join('')
    this.#parts.use({ cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) })
    const { validFromDate, validToDate, serialNumber } = new X509Certificate(cert)
    this.#parts.log.info(`serving with the certificate ${serialNumber.toLowerCase()}, valid until ${validToDate.toISOString()}`)
    const from = validFromDate.getTime()
    const at = from + ((validToDate.getTime() - from) * randomInt(renewal.from, renewal.to)) / 1000
    return Math.max(shortestMs, at - wallClockMs())
  }
}

function wantedName(host: string): WantedName {
  return isIP(host) === 0 ? { dns: host } : { address: Buffer.from(ipaddr.parse(host).toByteArray()) }
}
