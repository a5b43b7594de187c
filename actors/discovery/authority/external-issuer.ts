/** Has certificates signed by a signer of the orchestrator (`ORCH_SIGNER`), and checks what it signs (docs/certificates.md, E1 to E9). */
import { randomInt } from 'node:crypto'
import type { SignedFor, SignerAnswer } from '../../../protocols/messages/signer.ts'
import { checkSigned, SignerFault } from '../../../src/ca/signed-by-signer.ts'
import type { SigningRequest } from '../../../src/ca/signing-request.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { AskFor } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'
import { shortestLife } from '../cluster/signing-requests.ts'
import type { Made } from './issuer.ts'
import type { Refusal, Refusals } from './refusals.ts'

/** Dependencies and settings of {@link ExternalIssuer}. */
export interface ExternalIssuerParts {
  readonly askFor: AskFor
  /** The name of the signer. */
  readonly signer: string
  readonly refusals: Refusals
  readonly log: Logger
  /** Called when the roots of the signer, or what is wrong with it, have changed. */
  changed(): void
}

/** A certificate that is to be signed. */
export interface ExternalOrder {
  readonly use: SignedFor
  /** PEM, and what it holds. */
  readonly csr: string
  readonly request: SigningRequest
  /** The lifetime that is asked for, in milliseconds. */
  readonly lifeMs: number
  /** Who asks, for turns among callers. */
  readonly client: string
  /** The address of the caller, for the log. */
  readonly peer: string
  readonly asking: Asking
}

/** The interval at which the roots are read, in milliseconds. */
const rootsMs = 10_000
/** The interval until they are known. */
const firstRootsMs = 1000
/** After this many requests in a row that were not signed, that is told. */
const patience = 3
/** The least retry delay of a request that was not signed for a reason that passes, in milliseconds. */
const retryMs = 1000

/** Has certificates signed. */
export class ExternalIssuer {
  readonly #parts: ExternalIssuerParts
  readonly #timers: Timer[] = []
  #roots = ''
  /** Why the roots could not be read at the last attempt. */
  #fault: string | undefined
  #isReading = false
  /** The number of the last requests, none of which was signed, since when that is so, and what is told of it. */
  #unsigned = { count: 0, since: '', text: '' }

  constructor(parts: ExternalIssuerParts) {
    this.#parts = parts
    // Questions are answered once the actor has started.
    this.#timers.push(after(0, () => void this.read()))
    this.#timers.push(every(firstRootsMs, () => this.#roots === '' && void this.read()).unref())
    this.#timers.push(every(rootsMs, () => void this.read()).unref())
  }

  /** The roots of the signer, PEM; empty until they are known. */
  get roots(): string {
    return this.#roots
  }

  /** Why the roots cannot be read, and why nothing is signed. */
  get faults(): readonly string[] {
    return [this.#fault ?? '', this.#unsigned.text].filter(Boolean)
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
  }

  /** Reads the roots now. The last ones stay when they cannot be read. */
  async read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    const { askFor, changed, log, signer } = this.#parts
    const before = [this.#roots, this.#fault]
    try {
      this.#roots = await askFor(patient, 'signerRoots')
      this.#fault = undefined
    } catch (error) {
      const consequence = this.#roots === '' ? 'no certificate is signed' : 'the roots that are known stay'
      this.#fault = `the roots of the signer ${signer} cannot be read, ${consequence}: ${(error as Error).message}`
      if (this.#fault !== before[1]) log('ca').error(this.#fault)
    } finally {
      this.#isReading = false
    }
    if (before[0] !== this.#roots || before[1] !== this.#fault) changed()
  }

  /** Has a certificate signed, or says why there is none. */
  async make(order: ExternalOrder): Promise<Made | Refusal> {
    const { refusals, signer } = this.#parts
    if (this.#roots === '')
      return refusals.refuse(status.unavailable, 'CA_NOT_READY', 'the roots of the signer are not known', order.peer, this.#retry())
    const until = wallClockMs() + Math.max(order.lifeMs, shortestLife)
    const answer = await this.#ask(order)
    if (answer.outcome !== 'signed') return this.#notSigned(answer, order.peer)
    try {
      const roots = this.#roots
      const { leaf, intermediates, serial, notAfter, root } = checkSigned(answer.certificate, {
        request: order.request,
        roots,
        until,
        now: wallClockMs(),
      })
      this.#came('')
      return { chain: [leaf, ...(intermediates === '' ? [] : [intermediates]), roots], serial, notAfter, root }
    } catch (error) {
      if (!(error instanceof SignerFault)) throw error
      return this.#refused(error.kind, `${signer}: ${error.message}`, order.peer)
    }
  }

  #ask({ use, csr, lifeMs, client, asking }: ExternalOrder): Promise<SignerAnswer> {
    return this.#parts
      .askFor(asking, 'signBySigner', { use, csr, lifeMs, client })
      .catch((error: Error): SignerAnswer => ({ outcome: 'late', reason: error.message }))
  }

  #notSigned({ outcome, reason }: Exclude<SignerAnswer, { outcome: 'signed' }>, peer: string): Refusal {
    const { refusals } = this.#parts
    if (outcome === 'refused') return this.#refused('request', reason, peer)
    if (outcome === 'busy') return refusals.refuse(status.resourceExhausted, 'CA_NOT_READY', reason, peer, this.#retry())
    refusals.warn('signing', `no certificate is signed: ${reason}`)
    this.#came(reason)
    const message = outcome === 'late' ? 'the signer has not signed in time' : 'the signer cannot be asked'
    return refusals.refuse(status.unavailable, 'CA_NOT_READY', message, peer, this.#retry())
  }

  #refused(kind: string, reason: string, peer: string): Refusal {
    const { refusals } = this.#parts
    this.#came(reason)
    refusals.warn(`signing ${kind}`, `the certificate of the signer is refused: ${reason}`)
    return refusals.refuse(status.internal, 'CERT_GEN_ERROR', 'the certificate cannot be made', peer)
  }

  /** Notes what came of a request; without a reason it was signed. */
  #came(reason: string): void {
    const { count, since, text } = this.#unsigned
    if (reason === '') this.#unsigned = { count: 0, since: '', text: '' }
    else {
      const from = count === 0 ? new Date(wallClockMs()).toISOString() : since
      const told = count + 1 < patience ? '' : `the signer ${this.#parts.signer} has signed no request since ${from}: ${reason}`
      this.#unsigned = { count: count + 1, since: from, text: told }
    }
    if (this.#unsigned.text !== text) this.#parts.changed()
  }

  /** Callers that were refused together do not come back together. */
  #retry = (): number => retryMs + randomInt(retryMs)
}
