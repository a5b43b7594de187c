/**
 * The webhooks: reviews of the API server, received over TLS or from the main thread, and answered by the handler of their path. Consumes the
 * certificates of the port (`CertificateChanged`, `TrustChanged`, `MeshNamesChanged`) and what injection depends on (`InjectorChanged`,
 * `InjectorWebhooksChanged`, `MeshSettingsChanged`). The thread is its own: reviews are work for strangers, and
 * nobody but those who ask for one waits for it.
 */
import type { ReviewCall, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { gaugesOf } from '../../runtime/metrics.ts'
import { after } from '../../runtime/timers.ts'
import type { AdmissionHandler, WebhookMessage } from './admission-handler.ts'
import { Admissions } from './admissions.ts'
import { handlerMakers } from './handlers.ts'
import { isPortEvent, SecurePort } from './secure-port.ts'

class Webhooks implements Behaviour<WebhookMessage, never> {
  readonly asks: Behaviour<never>['asks']
  readonly #handlers: readonly AdmissionHandler[]
  readonly #admissions: Admissions
  readonly #port: SecurePort | undefined

  constructor(context: ActorContext<WebhooksConfig>) {
    this.#handlers = handlerMakers.flatMap((make) => make(context) ?? [])
    const own = {
      review: (call: ReviewCall, asking = patient) => this.#admissions.answer(call, asking),
      /** The main thread has refused a request. */
      refused: (path: string, status: number) => this.#admissions.refused(path, status),
    }
    this.asks = Object.assign(own, ...this.#handlers.map(({ asks }) => asks))
    this.#admissions = new Admissions(this.#handlers, context.log('validationServer'))
    const { port } = context.config
    const parts = {
      answer: (call: ReviewCall, asking = patient) => this.#admissions.answer(call, asking),
      refused: (path: string, status: number) => this.#admissions.refused(path, status),
    }
    // An actor whose port cannot be listened on ends, and its supervisor starts it again.
    const failed = (error: Error) =>
      void after(0, () => {
        throw error
      })
    this.#port = port && new SecurePort(context, port, parts, failed)
    gaugesOf(context.metrics)('pilot_webhook_reviews_under_way', 'reviews that are being answered', () => this.#admissions.underWay)
  }

  receive(message: WebhookMessage): void {
    if (isPortEvent(message)) this.#port?.receive(message)
    for (const handler of this.#handlers) handler.receive?.(message)
  }

  async drain(): Promise<void> {
    await this.#port?.close()
    await Promise.all(this.#handlers.map((handler) => handler.close?.()))
  }
}

/** The actor definition of the webhooks. */
export const actor: ActorDefinition<WebhooksConfig, WebhookMessage, never> = {
  kind: 'webhooks',
  start: (context) => new Webhooks(context),
}
