/**
 * Debouncing (discovery behaviour 1.8): a push is due when no event has come for `after`, or when events have come without a
 * break for `max`. One push at a time; events that come meanwhile wait for the next. Times in milliseconds of any clock.
 */

/** The two waits. */
export interface DebounceOptions {
  readonly after: number
  readonly max: number
}

/** Decides when to push. Holds no timer: it says when to look again. */
export class Debounce {
  readonly #options: DebounceOptions
  #first = 0
  #last = 0
  #events = 0
  #urgent = false
  #busy = false

  constructor(options: DebounceOptions) {
    this.#options = options
  }

  /** Events that wait. */
  get events(): number {
    return this.#events
  }

  /** An event came. An urgent one does not wait for others. */
  event(now: number, urgent = false): void {
    if (this.#events === 0) this.#first = now
    this.#last = now
    this.#events++
    this.#urgent ||= urgent
  }

  /** Milliseconds until a push may be due: 0 = now, undefined = nothing to wait for (no events, or a push is under way). */
  wait(now: number): number | undefined {
    if (this.#events === 0 || this.#busy) return undefined
    if (this.#urgent) return 0
    return Math.max(0, Math.min(this.#last + this.#options.after, this.#first + this.#options.max) - now)
  }

  /** A push begins with all events so far. Returns the time of the first. */
  begin(): number {
    this.#busy = true
    this.#events = 0
    this.#urgent = false
    return this.#first
  }

  /** The push is done. */
  done(): void {
    this.#busy = false
  }
}
