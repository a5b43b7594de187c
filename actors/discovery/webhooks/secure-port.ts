/** The port on which webhooks are served over TLS: its certificate, and whether it answers (docs/operation.md, W1). */

import type { WebhookPort, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import type { CertificateEvent, ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import { awaitedNote, unopenedNote } from '../../../protocols/messages/notes.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { isHost } from '../../../src/names/control-plane-hosts.ts'
import { splitAddress } from '../../http/address.ts'
import { loopbackLookup } from '../../http/loopback.ts'
import { Page, PageServer } from '../../http/page-server.ts'
import { ask, reasonOf } from '../../http/single-request.ts'
import { httpsClient } from '../../http/tls-client.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { Counter } from '../../runtime/metrics.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { OwnCertificate } from '../own-keys/own-certificate.ts'
import { addReviewPages, type ReviewPagesParts } from './review-pages.ts'

/** Maximum time for receiving a request, in milliseconds: the API server waits 30 s at most. */
const requestMs = 15_000
/**
 * How long a connection stays open without a request, in milliseconds. The API server keeps its own for 90 s: one that were closed here before could
 * be closed while a review is on its way, and the review would fail.
 */
const idleMs = 120_000
/**
 * The interval between two requests of this process to its own port, in milliseconds; the time that each may take; and the number of failures
 * in a row after which the port counts as not served.
 */
const own = { everyMs: 5000, ms: 1000, failures: 3 } as const
/** After this many failures to obtain the first certificate, the service does not wait for the port any more. */
const patience = 5
/**
 * At an orderly end a port that was asked for a review within `recentMs` is served for `endMs` more: API servers learn only after a moment that the pod
 * ends, and a review that fails makes them refuse the object.
 */
const lame = { recentMs: 60_000, endMs: 3000 }
/** The page that the process asks its own port for. */
const readyPath = '/httpsReady'

/** Messages that the port depends on. */
export type SecurePortEvent = CertificateEvent | TrustEvent | MeshNamesEvent

/** Whether a message is one of these. */
export const isPortEvent = (message: { readonly type: string }): message is SecurePortEvent =>
  ['CertificateChanged', 'TrustChanged', 'MeshNamesChanged'].includes(message.type)

/** Serves webhooks over TLS, once there is a certificate. */
export class SecurePort {
  readonly #context: ActorContext<WebhooksConfig>
  readonly #port: WebhookPort
  readonly #parts: ReviewPagesParts
  readonly #own: OwnCertificate | undefined
  readonly #refused: Counter
  readonly #failed: (error: Error) => void
  #server: PageServer | undefined
  #timer: Timer | undefined
  #names: MeshNamesEvent | undefined
  #generation = 0
  #failures = 0
  #isClosed = false
  /** When a review came last, in monotonic milliseconds. */
  #reviewedAt = Number.NEGATIVE_INFINITY

  /** `failed` is called when the port cannot be listened on. */
  constructor(context: ActorContext<WebhooksConfig>, port: WebhookPort, parts: ReviewPagesParts, failed: (error: Error) => void) {
    this.#context = context
    this.#port = port
    this.#parts = parts
    this.#failed = failed
    this.#refused = new Counter({
      name: 'pilot_webhook_refused_connections_total',
      help: 'connections to the HTTPS address that were closed because the maximum was reached, of the client with the most first',
      registers: [context.metrics],
    })
    context.note(awaitedNote, ['the HTTPS address has no certificate yet'])
    if (!port.ownHosts) return
    this.#own = new OwnCertificate({
      sign: ({ csr }) => context.askFor(patient, 'signServingCertificate', { csr, server: context.name }),
      log: context.log('validationServer'),
      use: (certificate) => this.#use(certificate),
      failed: (times, reason) => this.#unsigned(times, reason),
    })
  }

  receive(event: SecurePortEvent): void {
    if (event.type === 'CertificateChanged') return this.#use(event.certificate)
    if (event.type === 'MeshNamesChanged') this.#names = event
    else {
      if (event.generation > 0 && this.#generation > 0 && event.generation !== this.#generation) this.#own?.renew()
      if (event.generation > 0) this.#generation = event.generation
    }
    if (!this.#names || this.#generation === 0) return
    this.#own?.serve([splitAddress(this.#names.discoveryAddress)[0], ...(this.#port.ownHosts ?? [])].filter(isHost))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    if (monotonicMs() - this.#reviewedAt < lame.recentMs) await this.#server?.end(lame.endMs)
    else await this.#server?.close()
  }

  #use(certificate: ServingCertificate): void {
    if (this.#server) return this.#server.useCertificate(certificate)
    this.#server = new PageServer({
      ...{ certificate, requestMs, idleMs, maxConnections: this.#context.config.connections },
      refused: () => this.#refused.inc(),
    })
    this.#server.add(readyPath, () => new Page(''))
    addReviewPages(this.#server, {
      ...this.#parts,
      answer: (call, asking) => {
        this.#reviewedAt = monotonicMs()
        return this.#parts.answer(call, asking)
      },
    })
    this.#open(this.#server).catch(this.#failed)
  }

  async #open(server: PageServer): Promise<void> {
    const { host, port } = this.#port
    await server.listen(host === '' ? '::' : host, port)
    if (this.#isClosed) return server.close()
    this.#timer = every(own.everyMs, () => void this.#examine()).unref()
    await this.#examine()
  }

  /** Asks the own port, as the API server does. */
  async #examine(): Promise<void> {
    const reason = await this.#ask().catch(reasonOf)
    if (this.#isClosed) return
    this.#failures = reason === undefined ? 0 : this.#failures + 1
    if (reason === undefined) {
      this.#context.note(awaitedNote, [])
      this.#context.note(unopenedNote, [])
    } else if (this.#failures >= own.failures) this.#context.note(awaitedNote, [`the HTTPS address does not answer this process: ${reason}`])
  }

  async #ask(): Promise<string | undefined> {
    const { host, port } = this.#port
    const isAny = host === '' || /^[0:.]+$/.test(host)
    const address = isAny ? { host: 'localhost', port, lookup: loopbackLookup(false) } : { host, port }
    const client = await httpsClient(address, { rejectUnauthorized: false })
    const { status } = await ask({ ...address, path: readyPath, timeout: own.ms, ...client }, { ms: own.ms, bytes: 1024 })
    return status === 200 ? undefined : `status ${status}`
  }

  #unsigned(times: number, reason: string): void {
    if (this.#server || times < patience) return
    this.#context.note(awaitedNote, [])
    this.#context.note(unopenedNote, [`webhooks are not served: the certificate of the HTTPS address was not signed: ${reason}`])
  }
}
