/** The term in which this process leads, as an actor has it: asks the main thread, which answers when the term changes. */
import type { Duty } from '../../../protocols/messages/leadership.ts'
import type { AskFor } from '../../runtime/actor.ts'
import { after } from '../../runtime/timers.ts'

/** The pause after a question that was not answered, in milliseconds. */
const pauseMs = 1000

/**
 * Follows the term of a duty. What an actor writes names the term, so that the main thread refuses it when the term is over meanwhile: the
 * term that is known here may be over for the time that a message takes.
 */
export class FollowedTerm {
  readonly #ask: AskFor
  readonly #duty: Duty
  readonly #changed: () => void
  readonly #closed = new AbortController()
  #term = 0

  /** `changed` is called when a term begins or ends. */
  constructor(ask: AskFor, duty: Duty, changed: () => void) {
    this.#ask = ask
    this.#duty = duty
    this.#changed = changed
    // Questions are answered once the actor has started.
    after(0, () => void this.#follow())
  }

  /** The number of the term; 0: this process does not lead. */
  get now(): number {
    return this.#term
  }

  close(): void {
    this.#closed.abort()
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closed
    while (!signal.aborted) {
      try {
        const term = await this.#ask({ signal, restMs: () => Number.POSITIVE_INFINITY }, 'leadership', this.#duty, this.#term)
        if (signal.aborted || term === this.#term) continue
        this.#term = term
        this.#changed()
      } catch {
        if (!signal.aborted) await new Promise<void>((resolve) => after(pauseMs, resolve).unref())
      }
    }
  }
}
