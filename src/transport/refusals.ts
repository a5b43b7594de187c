/** How many streams of a connection may be refused (docs/xds-protocol.md, "Bounds"): a refusal costs the server more than the client. */

/** The number of streams at once, and a second. A client that waits for an answer before it tries again stays far below. */
const bounds = { burst: 1000, perSecond: 33 }

/** Counts the streams of one connection that ended with an error. */
export class Refusals {
  #left = bounds.burst
  #at: number

  /** `now` is monotonic time in milliseconds, as in {@link count}. */
  constructor(now: number) {
    this.#at = now
  }

  /** Counts a refused stream. Returns whether the connection may stay. */
  count(now: number): boolean {
    this.#left = Math.min(bounds.burst, this.#left + ((now - this.#at) / 1000) * bounds.perSecond) - 1
    this.#at = now
    return this.#left >= 0
  }
}
