/** When discovery is called again after a stream to it, or an attempt to have one, has ended (docs/agent.md, X5). */

/** Longest wait after the first failure, doubled with each further one, and the longest of all, in milliseconds. */
const firstMs = 500
const longestMs = 10_000
/** Longest wait that discovery may ask for, in milliseconds. */
const longestAskedMs = 60_000
/** A stream on which discovery answered for so many milliseconds is a success: the next one waits for nothing. */
const lastingMs = 10_000

/** How an attempt went. Times in milliseconds. */
export interface Outcome {
  /** For how long discovery answered on it; 0 when it never did. */
  readonly servedMs: number
  /** For how long discovery has asked not to be called again; 0 when it did not. */
  readonly askedMs: number
}

/** One for all streams, so that no succession of them hammers at discovery, whichever side ends them. */
export class BackOff {
  #failures = 0
  #due = 0

  /** Attempts in a row that came to nothing, or that did not last. */
  get failures(): number {
    return this.#failures
  }

  /**
   * An attempt has ended at the time `now`, in milliseconds of a monotonic clock. The next may be made after any time up to half a second,
   * doubled with each failure after the first, ten seconds at most, and not before discovery wants it, a minute at most. `chance` is from 0 to
   * 1; all of the time is left to it, so that agents spread which lost the same server.
   */
  ended({ servedMs, askedMs }: Outcome, now: number, chance: number): void {
    this.#failures = servedMs >= lastingMs ? 0 : this.#failures + 1
    const longest = this.#failures === 0 ? 0 : Math.min(longestMs, firstMs * 2 ** Math.min(this.#failures - 1, 20))
    this.#due = now + Math.max(chance * longest, Math.min(longestAskedMs, askedMs) * (1 + chance / 5))
  }

  /** Discovery answers: the next attempt waits for nothing. */
  reset(): void {
    this.#failures = 0
    this.#due = 0
  }

  /** For how many milliseconds the next attempt waits. */
  wait(now: number): number {
    return Math.max(0, this.#due - now)
  }
}
