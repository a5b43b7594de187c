/** When an advance that failed is tried again without another change: with pauses that grow, so that an error that stays costs little. */

/** The pause after the first failure, doubled with each further one, and the longest pause, in milliseconds. */
const pauses = { first: 1000, longest: 60_000 }

/** The pauses between attempts at one thing. Times are milliseconds of a monotonic clock. */
export class Retry {
  #failures = 0
  #due: number | undefined

  /** When the next attempt is due. Undefined while the last one succeeded. */
  get due(): number | undefined {
    return this.#due
  }

  /** Records that an attempt ended at the time `now`, whatever led to it. */
  ended(succeeded: boolean, now: number): void {
    this.#due = succeeded ? undefined : now + Math.min(pauses.longest, pauses.first * 2 ** Math.min(this.#failures, 10))
    this.#failures = succeeded ? 0 : this.#failures + 1
  }
}
