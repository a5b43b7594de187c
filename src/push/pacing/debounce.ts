/**
 * Debouncing (docs/resources.md, Q1). A push is due when no event has come for `after`, at the latest `max` after the first event.
 * When all events changed endpoints only, it is due at the latest five times `after` after the first, because proxies send requests
 * to old endpoints until then. Only one push is under way at a time; events that come meanwhile wait for the next push. Times in
 * milliseconds of any clock.
 */

/** The two waiting times, in milliseconds: the quiet period after the last event, and the maximum time after the first event. */
export interface DebounceOptions {
  readonly after: number
  readonly max: number
}

/** Why a push is due: an event was urgent, no event came for the quiet period, or the maximum time after the first event has passed. */
export type DueCause = 'urgent' | 'quiet' | 'longest'

/** The maximum wait for changes of endpoints only, as a multiple of the quiet period. */
const maxQuietPeriods = 5

/** Decides when a push is due. It holds no timer: `wait` returns when to check again. */
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

  /** The number of events since the last push began. */
  get events(): number {
    return this.#events
  }

  /**
   * Records an event at `now`. An urgent event makes a push due at once. Events that all change endpoints only have a shorter maximum wait.
   */
  event(now: number, { urgent = false, onlyEndpoints = false } = {}): void {
    if (this.#events === 0) this.#first = now
    this.#last = now
    this.#events++
    this.#urgent ||= urgent
    this.#onlyEndpoints &&= onlyEndpoints
  }

  /** Milliseconds until a push may be due. 0: now. Undefined: there are no events, or a push is under way. */
  wait(now: number): number | undefined {
    if (this.#events === 0 || this.#busy) return undefined
    if (this.#urgent) return 0
    const { after, max } = this.#options
    const longest = this.#onlyEndpoints ? Math.min(max, maxQuietPeriods * after) : max
    return Math.max(0, Math.min(this.#last + after, this.#first + longest) - now)
  }

  /** Why a push is due at `now`. */
  cause(now: number): DueCause {
    if (this.#urgent) return 'urgent'
    return now >= this.#last + this.#options.after ? 'quiet' : 'longest'
  }

  /** Begins a push with all events so far. Returns the time of the first event. */
  begin(): number {
    this.#busy = true
    this.#events = 0
    this.#urgent = false
    this.#onlyEndpoints = true
    return this.#first
  }

  /** Called when the push is complete. */
  done(): void {
    this.#busy = false
  }
}
