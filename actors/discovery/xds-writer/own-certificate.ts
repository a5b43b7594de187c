/**
 * The serving certificate of a writer that its own certificate authority signs. The key is made here and never leaves the writer; the
 * authority is sent a request (docs/identity.md, T11 and T12).
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

/** What the certificate of a writer needs of it. */
export interface OwnCertificateParts {
  /** Asks the certificate authority. */
  sign(request: ServingCertificateRequest): Promise<CertificateAnswer>
  /** There is another certificate to serve with. */
  use(certificate: ServingCertificate): void
  readonly log: ScopedLogger
}

/** How long the authority is left alone after it did not sign, in milliseconds: at first, and at most. */
const retry = { first: 200, most: 30_000 }
/** Share of a certificate's life after which it is renewed, in thousandths: by chance between the two, so that writers do not renew together. */
const renewal = { from: 500, to: 650 }

/** How often the wall clock is looked at for a renewal, in milliseconds. */
const lookMs = 60_000

const newKeyPair = promisify(generateKeyPair)

/** Has a certificate signed for a key of its own when its hosts are known, and again when something about it has to be another. */
export class OwnCertificate {
  readonly #parts: OwnCertificateParts
  #hosts: readonly string[] = []
  #timer: Timer | undefined
  #isAsking = false
  /** Whether something changed while the authority was asked. */
  #isStale = false
  /** Watches the wall clock for a renewal. */
  #look: Timer | undefined
  #wait = retry.first

  constructor(parts: OwnCertificateParts) {
    this.#parts = parts
  }

  /** The hosts, DNS names and addresses, under which this process is reached. Has a certificate signed when they are others than before. */
  serve(hosts: readonly string[]): void {
    const all = [...new Set(hosts)]
    if (String(all) === String(this.#hosts)) return
    this.#hosts = all
    this.renew()
  }

  /** Has another certificate signed, once hosts are known: the authority signs otherwise than before. */
  renew(): void {
    if (this.#hosts.length === 0) return
    this.#isStale = true
    if (this.#isAsking) return
    this.#timer?.cancel()
    this.#look?.cancel()
    this.#isAsking = true
    void this.#ask().then((wait) => {
      this.#isAsking = false
      if (this.#isStale && wait === 0) return this.renew()
      this.#askIn(wait)
    })
  }

  /** Asks again when so many milliseconds have passed by the monotonic clock, which stands still while the machine sleeps, or by the wall clock. */
  #askIn(wait: number): void {
    const at = wallClockMs() + wait
    this.#timer = after(wait, () => this.renew()).unref()
    if (wait <= lookMs) return
    this.#look = every(lookMs, () => {
      if (wallClockMs() >= at) this.renew()
    }).unref()
  }

  /** Returns after how many milliseconds to ask again: at once when something has changed meanwhile. */
  async #ask(): Promise<number> {
    this.#isStale = false
    try {
      const { makeSigningRequest } = await import('../../../src/ca/signing-request.ts')
      const { privateKey } = await newKeyPair('ec', { namedCurve: 'P-256' })
      const answer = await this.#parts.sign({ csr: makeSigningRequest(privateKey, this.#hosts.map(wantedName)) })
      if ('code' in answer) throw new Error(answer.message)
      if (this.#isStale) return 0
      this.#wait = retry.first
      return this.#use(answer.chain, privateKey)
    } catch (error) {
      this.#parts.log.warn(`the serving certificate was not signed: ${(error as Error).message}; trying again in ${this.#wait} ms`)
      const wait = this.#wait
      this.#wait = Math.min(retry.most, wait * 2)
      return wait
    }
  }

  /** Returns after how many milliseconds to renew it. The last element of the chain are the roots, which clients have. */
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
