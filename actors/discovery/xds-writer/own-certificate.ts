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
import { wallClockMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'

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

/** Delay before the authority is asked again after a failure, in milliseconds: at first, and at most. */
const retry = { first: 200, most: 30_000 }
/**
 * Share of a certificate's lifetime after which it is renewed, in thousandths. The value is random within the range, so that writers do
 * not renew at the same time.
 */
const renewal = { from: 500, to: 650 }

/** Interval at which the wall clock is checked for a due renewal, in milliseconds. */
const checkMs = 60_000

const newKeyPair = promisify(generateKeyPair)

/** Obtains a certificate once the hosts are known, and renews it before it expires or when the hosts or the authority's signing change. */
export class OwnCertificate {
  readonly #parts: OwnCertificateParts
  #hosts: readonly string[] = []
  #timer: Timer | undefined
  #isAsking = false
  /** Whether a change came while a request was under way, so that its result is out of date. */
  #isStale = false
  /** Timer that checks the wall clock for a due renewal. */
  #check: Timer | undefined
  #wait = retry.first
  #failures = 0

  constructor(parts: OwnCertificateParts) {
    this.#parts = parts
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
    this.#isStale = true
    if (this.#isAsking) return
    this.#timer?.cancel()
    this.#check?.cancel()
    this.#isAsking = true
    void this.#ask().then((wait) => {
      this.#isAsking = false
      if (this.#isStale && wait === 0) return this.renew()
      this.#askIn(wait)
    })
  }

  /**
   * Renews after `wait` milliseconds of the monotonic clock or of the wall clock, whichever elapses first: the monotonic clock stops
   * while the machine sleeps.
   */
  #askIn(wait: number): void {
    const at = wallClockMs() + wait
    this.#timer = after(wait, () => this.renew()).unref()
    if (wait <= checkMs) return
    this.#check = every(checkMs, () => {
      if (wallClockMs() >= at) this.renew()
    }).unref()
  }

  /** Requests a certificate. Returns the delay until the next request in milliseconds: 0 when a change came meanwhile. */
  async #ask(): Promise<number> {
    this.#isStale = false
    try {
      const { makeSigningRequest } = await import('../../../src/ca/signing-request.ts')
      const { privateKey } = await newKeyPair('ec', { namedCurve: 'P-256' })
      const answer = await this.#parts.sign({ csr: makeSigningRequest(privateKey, this.#hosts.map(wantedName)) })
      if ('code' in answer) throw new Error(answer.message)
      if (this.#isStale) return 0
      this.#wait = retry.first
      this.#failures = 0
      return this.#use(answer.chain, privateKey)
    } catch (error) {
      this.#parts.log.warn(`the serving certificate was not signed: ${(error as Error).message}; trying again in ${this.#wait} ms`)
      this.#parts.failed(++this.#failures, (error as Error).message)
      const wait = this.#wait
      this.#wait = Math.min(retry.most, wait * 2)
      return wait
    }
  }

  /**
   * Puts a signed certificate into use. Returns the delay until its renewal in milliseconds. The last element of the chain holds the
   * roots, which are not served.
   */
  #use(chain: readonly string[], privateKey: KeyObject): number {
    const cert = chain.slice(0, -1).join('')
    this.#parts.use({ cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) })
    const { validFromDate, validToDate, serialNumber } = new X509Certificate(cert)
    this.#parts.log.info(`serving with the certificate ${serialNumber.toLowerCase()}, valid until ${validToDate.toISOString()}`)
    const from = validFromDate.getTime()
    const at = from + ((validToDate.getTime() - from) * randomInt(renewal.from, renewal.to)) / 1000
    return Math.max(retry.most, at - wallClockMs())
  }
}

function wantedName(host: string): WantedName {
  return isIP(host) === 0 ? { dns: host } : { address: Buffer.from(ipaddr.parse(host).toByteArray()) }
}
