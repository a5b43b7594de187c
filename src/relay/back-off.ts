/** The back-off between attempts to open a stream to discovery (docs/agent.md, X5). */

/** The maximum delay after the first failure, doubled with each further failure, and the overall maximum, in milliseconds. */
const firstMs = 500
const longestMs = 10_000
/** The maximum delay that discovery can ask for, in milliseconds. */
const longestAskedMs = 60_000
/** A stream on which discovery sent responses for at least this time is a success and resets the back-off, in milliseconds. */
const lastingMs = 10_000

/** The outcome of an attempt. Times are milliseconds. */
export interface Outcome {
  /** How long discovery sent responses on the stream; 0 when it never did. */
  readonly servedMs: number
  /** The minimum delay before the next attempt that discovery asked for; 0 when it did not ask. */
  readonly askedMs: number
}

/**
 * The back-off. All streams of a proxy share one, so that a quick succession of streams does not overload discovery, whichever side ends
 * them.
 */
export class BackOff {
  #failures = 0
  #due = 0

  /** The number of consecutive attempts that failed or ended early. */
  get failures(): number {
    return this.#failures
  }

  /**
   * Records the end of an attempt at the time `now`, in milliseconds of a monotonic clock. The next attempt is due after a random delay
   * (full jitter) of up to half a second, doubled with each failure after the first, up to ten seconds, and not before discovery allows it,
   * which delays it by up to a minute plus jitter. `chance` is a random number from 0 to 1, so that agents that lost the same server spread
   * their attempts.
   */
  ended({ servedMs, askedMs }: Outcome, now: number, chance: number): void {
    this.#failures = servedMs >= lastingMs ? 0 : this.#failures + 1
    const longest = this.#failures === 0 ? 0 : Math.min(longestMs, firstMs * 2 ** Math.min(this.#failures - 1, 20))
    this.#due = now + Math.max(chance * longest, Math.min(longestAskedMs, askedMs) * (1 + chance / 5))
  }

  /** Resets the back-off, because discovery responds. The next attempt is due at once. */
  reset(): void {
    this.#failures = 0
    this.#due = 0
  }

  /** The remaining delay until the next attempt, in milliseconds. */
  wait(now: number): number {
    return Math.max(0, this.#due - now)
  }
}
