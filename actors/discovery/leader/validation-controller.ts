/**
 * Keeps the ValidatingWebhookConfiguration of discovery while this process leads (docs/operation.md, W7 and W8): takes the certificates that verify
 * the webhook (`TrustChanged`), and has the main thread read, try and write.
 */
import type { CertificateEvent } from '../../../protocols/messages/certificates.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import type { ValidationControllerConfig, ValidationStepOutcome } from '../../../protocols/messages/validation-webhook.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { Counter } from '../../runtime/metrics.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { FollowedTerm } from './followed-term.ts'

/** The pauses after a step, in milliseconds, by what came of it. */
const pauses = { absent: 5000, closed: 10_000, open: 1000, lost: 1000, failed: 5000 } as const
/** After this many steps in a row in which the webhook was not seen to deny, `failurePolicy` becomes `Ignore`. */
const patience = 3

class ValidationController implements Behaviour<TrustEvent | CertificateEvent, never> {
  readonly #context: ActorContext<ValidationControllerConfig>
  readonly #term: FollowedTerm
  readonly #loads: Counter
  readonly #loadErrors: Counter<'reason'>
  readonly #updates: Counter
  readonly #updateErrors: Counter<'reason'>
  /** Undefined until the source of trust has told. */
  #bundle: string | undefined
  #isUnderWay = false
  /** What was wanted while a step was under way. */
  #isDue = false
  #timer: Timer | undefined
  /** Steps in a row in which the webhook was not seen to deny, of this process since it leads. */
  #open = 0
  #version = ''
  #said = ''

  constructor(context: ActorContext<ValidationControllerConfig>) {
    this.#context = context
    const registers = [context.metrics]
    const labelNames = ['reason'] as const
    const loads = 'versions of the configuration of the validating webhook that were read'
    this.#loads = new Counter({ name: 'galley_validation_config_load', help: loads, registers })
    this.#loadErrors = new Counter({ name: 'galley_validation_config_load_error', help: 'failures to read it', labelNames, registers })
    this.#updates = new Counter({ name: 'galley_validation_config_updates', help: 'writes of it', registers })
    this.#updateErrors = new Counter({ name: 'galley_validation_config_update_error', help: 'failures to write it', labelNames, registers })
    this.#term = new FollowedTerm({
      ...{ ask: context.askFor, duty: 'validation', log: context.log('orch') },
      changed: () => {
        this.#open = 0
        this.#work()
      },
    })
  }

  receive(event: TrustEvent | CertificateEvent): void {
    if (event.type !== 'TrustChanged') return
    const { source, roots, announced } = event
    // Of the sources of trust only an authority announces its roots.
    const bundle = this.#context.config.hasFiles ? (source === 'certificate-watcher' ? roots[''] : undefined) : announced
    if (bundle === undefined) return
    if (bundle === this.#bundle) return
    this.#bundle = bundle
    this.#work()
  }

  async drain(): Promise<void> {
    this.#term.close()
    this.#timer?.cancel()
  }

  #work(): void {
    this.#timer?.cancel()
    if (this.#term.now === 0 || this.#bundle === undefined) return
    this.#isDue = this.#isUnderWay
    if (this.#isUnderWay) return
    this.#isUnderWay = true
    void this.#step(this.#bundle)
  }

  async #step(bundle: string): Promise<void> {
    const step = { term: this.#term.now, bundle, opens: this.#open + 1 >= patience }
    const outcome = await this.#context
      .askFor(patient, 'keepValidationWebhook', step)
      .catch((error: Error): ValidationStepOutcome => ({ outcome: 'failed', at: 'load', word: 'Timeout', reason: error.message }))
    this.#isUnderWay = false
    this.#took(outcome)
    if (this.#isDue) this.#work()
    else this.#timer = after(pauses[outcome.outcome], () => this.#work()).unref()
  }

  #took(outcome: ValidationStepOutcome): void {
    const configuration = this.#configuration
    this.#count(outcome)
    switch (outcome.outcome) {
      case 'absent':
        return this.#say('info', `there is no ${configuration}: nothing is kept`, false)
      case 'closed':
        this.#open = 0
        return this.#say(
          'info',
          `${configuration}: the webhooks deny what is invalid; what they cannot be asked about is denied (failurePolicy Fail)`,
          false,
          outcome.isWritten,
        )
      case 'open':
        this.#open++
        // The first attempts may come before the server has read what was written.
        if (this.#open < patience) return
        return this.#say(
          'warn',
          `${configuration}: invalid objects are not denied (failurePolicy Ignore): ${outcome.reason}`,
          true,
          outcome.isWritten,
        )
      case 'failed':
        return this.#say('error', `${configuration} cannot be kept: ${outcome.reason}`, true)
      case 'lost':
        return
    }
  }

  get #configuration(): string {
    return `ValidatingWebhookConfiguration ${this.#context.config.name}`
  }

  #count(outcome: ValidationStepOutcome): void {
    if (outcome.outcome === 'failed') {
      const { at, word: reason } = outcome
      if (at === 'load') this.#loadErrors.inc({ reason })
      else this.#updateErrors.inc({ reason })
    }
    if (outcome.outcome !== 'open' && outcome.outcome !== 'closed') return
    if (outcome.version !== this.#version) this.#loads.inc()
    this.#version = outcome.version
    if (outcome.isWritten) this.#updates.inc()
  }

  /** Logs what is new, and what had to be written again. `isTrouble`: `/ready` tells of it. */
  #say(level: 'info' | 'warn' | 'error', line: string, isTrouble: boolean, isWritten = false): void {
    if (line === this.#said) {
      if (isWritten)
        this.#context.log('validationController').info(`${this.#configuration} was changed by somebody else and is written again: ${line}`)
      return
    }
    this.#said = line
    this.#context.log('validationController')[level](line)
    this.#context.note(attentionNote, isTrouble ? [line] : [])
  }
}

/** The actor definition of the keeper of the validating webhook's configuration. */
export const actor: ActorDefinition<ValidationControllerConfig, TrustEvent | CertificateEvent, never> = {
  kind: 'validation-controller',
  start: (context) => new ValidationController(context),
}
