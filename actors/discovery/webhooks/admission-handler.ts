/** The seam between the server of reviews and what a webhook does. */
import type { AdmissionAnswer, AdmissionRequest, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import type { CertificateEvent } from '../../../protocols/messages/certificates.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { InjectorEvent, InjectorWebhooksEvent, MeshSettingsEvent } from '../../../protocols/messages/injection.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import type { ActorContext, Behaviour } from '../../runtime/actor.ts'
import type { Asking } from '../../runtime/ask.ts'

/** How a review was asked. */
export interface AdmissionCall {
  /** What follows the path of the handler, without the slash between them, as in the URL: `cluster/east/net/n1`; empty: nothing. */
  readonly rest: string
  /** Until when the answer is waited for. A handler ends its work when the signal is aborted. */
  readonly asking: Asking
}

/**
 * What a webhook does. It runs on the thread of the webhooks: work that may take longer than some ten milliseconds runs elsewhere
 * (`actors/runtime/pool.ts`), so that other reviews are answered meanwhile.
 */
export interface AdmissionHandler {
  /** The paths that it answers. */
  readonly paths: readonly string[]
  /** Whether it also answers the paths that begin with one of its own and a slash. */
  readonly takesMore: boolean
  /** Answers a review. What rejects is logged and denies the request with status 500, unless it is {@link Busy}. `long`: {@link admitLarge} answers it. */
  admit(request: AdmissionRequest, call: AdmissionCall): Admitted | Promise<Admitted>
  /**
   * Answers a review of more than {@link largeBytes}, which was not read yet, or one that takes long, with the JSON of its answer (`src/orchestrator/admission-review.ts`).
   * Without it, the review is read on the thread of the webhooks.
   */
  admitLarge?(body: Uint8Array, call: AdmissionCall): Promise<string>
  /** Called for each review that cannot be read, and so was not passed to {@link admit}. */
  unread?(): void
  /** Called for each request that is answered with a status other than 200. */
  refused?(status: number): void
  /** Takes a message that the actor was sent: each handler gets all. */
  receive?(message: WebhookMessage): void
  /** Answers of the actor to questions of others. */
  readonly asks?: Behaviour<never>['asks']
  close?(): Promise<void>
}

/** An answer, or that it takes too long on the thread of the webhooks. */
export type Admitted = AdmissionAnswer | 'long'

/** The messages that the actor consumes. */
export type WebhookMessage = CertificateEvent | TrustEvent | MeshNamesEvent | MeshSettingsEvent | InjectorEvent | InjectorWebhooksEvent

/** Makes a handler, or undefined where a variable switches it off. It gets the context of the actor, for log, metrics and questions. */
export type HandlerMaker = (context: ActorContext<WebhooksConfig>) => AdmissionHandler | undefined

/** Thrown by a handler that cannot answer in time: the request is answered with 503, so that `failurePolicy` decides. */
export class Busy extends Error {}

/** The size of the largest review that is read on the thread of the webhooks, in bytes. */
export const largeBytes = 65_536
