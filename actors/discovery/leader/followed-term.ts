/** The term in which this process leads, as an actor has it: asks the main thread, which answers when the term changes. */
import type { Duty } from '../../../protocols/messages/leadership.ts'
import type { AskFor } from '../../runtime/actor.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The pause after a question that was not answered, in milliseconds. */
const pauseMs = 1000

/** What a followed term is made of. */
export interface FollowedTermParts {
  readonly ask: AskFor
  readonly duty: Duty
  readonly log: ScopedLogger
  /** Called when a term begins or ends. */
  changed(): void
}

/**
 * Follows the term of a duty. What an actor writes names the term, so that the main thread refuses it when the term is over meanwhile: the
 * term that is known here may be over for the time that a message takes. While the main thread does not answer, the last known term stays: whoever
 * writes in it is refused there if it is over.
 */
export class FollowedTerm {
  readonly #parts: FollowedTermParts
  readonly #closed = new AbortController()
  readonly #begin: Timer
  #pause: Timer | undefined
  #term = 0
  /** Why the term is not known, as it was logged. */
  #trouble = ''

  constructor(parts: FollowedTermParts) {
    this.#parts = parts
    // Questions are answered once the actor has started.
    this.#begin = after(0, () => void this.#ask())
  }

  /** The number of the term; 0: this process does not lead. */
  get now(): number {
    return this.#term
  }

  close(): void {
    this.#closed.abort()
    this.#begin.cancel()
    this.#pause?.cancel()
  }

  async #ask(): Promise<void> {
    const { ask, duty } = this.#parts
    const { signal } = this.#closed
    while (!signal.aborted) {
      try {
        this.#set(await ask({ signal, restMs: () => Number.POSITIVE_INFINITY }, 'leadership', duty, this.#term))
      } catch (error) {
        if (signal.aborted) return
        this.#failed((error as Error).message)
        this.#pause = after(pauseMs, () => void this.#ask()).unref()
        return
      }
    }
  }

  #set(term: number): void {
    if (this.#closed.signal.aborted) return
    const { log, duty, changed } = this.#parts
    if (this.#trouble !== '') log.info(`whether this replica leads (${duty}) is known again`)
    this.#trouble = ''
    if (term === this.#term) return
    this.#term = term
    changed()
  }

  #failed(reason: string): void {
    if (reason === this.#trouble) return
    this.#trouble = reason
    const { log, duty } = this.#parts
    log.error(`whether this replica leads (${duty}) is not known: ${reason}; what was known before stays, and it is asked again every second`)
  }
}
