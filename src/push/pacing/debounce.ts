/**
 * Debouncing (docs/resources.md, Q1). A push is due when no event has come for `after`, at the latest `max` after the first event.
 * When all events changed endpoints only, it is due at the latest five times `after` after the first, because proxies send requests
 * to old endpoints until then. Only one push is under way at a time; events that come meanwhile wait for the next push. Times in
 * milliseconds of any clock.
 */

/** The two waits. */
export interface DebounceOptions {
  readonly after: number
  readonly max: number
}

/** Quiet periods that a change of endpoints waits at most. */
const endpointPatience = 5

/** Decides when to push. Holds no timer: it says when to look again. */
export class Debounce {
  readonly #options: DebounceOptions
  #first = 0
  #last = 0
  #events = 0
  #urgent = false
  #onlyEndpoints = true
  #busy = false

  constructor(options: DebounceOptions) {
    this.#options = options
  }

  /** Events that wait. */
  get events(): number {
    return this.#events
  }

  /** An event came. An urgent one does not wait for others; one that changes only endpoints does not wait long. */
  event(now: number, { urgent = false, onlyEndpoints = false } = {}): void {
    if (this.#events === 0) this.#first = now
    this.#last = now
    this.#events++
    this.#urgent ||= urgent
    this.#onlyEndpoints &&= onlyEndpoints
  }

  /** Milliseconds until a push may be due: 0 = now, undefined = nothing to wait for (no events, or a push is under way). */
  wait(now: number): number | undefined {
    if (this.#events === 0 || this.#busy) return undefined
    if (this.#urgent) return 0
    const { after, max } = this.#options
    const longest = this.#onlyEndpoints ? Math.min(max, endpointPatience * after) : max
    return Math.max(0, Math.min(this.#last + after, this.#first + longest) - now)
  }

  /** A push begins with all events so far. Returns the time of the first. */
  begin(): number {
    this.#busy = true
    this.#events = 0
    this.#urgent = false
    this.#onlyEndpoints = true
    return this.#first
  }

  /** The push is done. */
  done(): void {
    this.#busy = false
  }
}
