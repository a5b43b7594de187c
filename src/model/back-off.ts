/** The one back-off: how long whatever repeats failed attempts waits before the next. Times are milliseconds of a monotonic clock. */

/** How the delays between attempts at one thing grow. */
export interface Pauses {
  /** The delay after the first failure, doubled by each further one in a row. */
  readonly firstMs: number
  readonly longestMs: number
  /** The share of a delay, 0 to 1, by which it is shortened at random at most, so that many who lost one server come back spread over time. */
  readonly jitter?: number
  /** The longest delay that the other side may ask for. Up to a fifth of what it asks for is added at random. */
  readonly longestAskedMs?: number
}

/** What determines the delay after one failure, beside the pauses; in milliseconds. */
export interface FailureTerms {
  /** The longest delay, where that differs from one failure to the next. */
  readonly longestMs?: number
  /** The delay that the other side asks for. */
  readonly askedMs?: number
  /** The number of failures up to which this one is counted, so that delays after failures of another kind do not grow by it without bound. */
  readonly countedUpTo?: number
}

/** The exponent from which delays do not grow, so that they stay finite. */
const maxDoublings = 40
/** The share of a delay that the other side asks for by which it is extended at random at most. */
const askedJitter = 0.2

/** Returns the delay after a number of failures in a row, which is at least 1. `chance` is a random number from 0 to 1. */
export function pauseAfter(failures: number, { firstMs, longestMs, jitter = 0 }: Pauses, chance = 0): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, maxDoublings)) * (1 - jitter * chance)
}

/** Counts the failures of attempts at one thing, and tells when the next attempt is due. */
export class BackOff {
  readonly #pauses: Pauses
  #failures = 0
  #dueAt = Number.NEGATIVE_INFINITY

  constructor(pauses: Pauses) {
    this.#pauses = pauses
  }

  /** The number of failures since the last success that were counted. */
  get failures(): number {
    return this.#failures
  }

  /** Records a failure. Returns the delay until the next attempt. `chance` is a random number from 0 to 1. */
  failed(now: number, chance = 0, terms: FailureTerms = {}): number {
    const { longestMs = this.#pauses.longestMs, askedMs = 0, countedUpTo = Number.POSITIVE_INFINITY } = terms
    if (this.#failures < countedUpTo) this.#failures++
    const wait = Math.max(pauseAfter(this.#failures, { ...this.#pauses, longestMs }, chance), this.#least(askedMs, chance))
    this.#dueAt = now + wait
    return wait
  }

  /** Puts the next attempt off after a success, because the other side asks for a delay. */
  postpone(askedMs: number, now: number, chance = 0): void {
    this.#dueAt = now + this.#least(askedMs, chance)
  }

  #least(askedMs: number, chance: number): number {
    return Math.min(this.#pauses.longestAskedMs ?? 0, askedMs) * (1 + askedJitter * chance)
  }

  /** Records a success. The next attempt is due at once. */
  succeeded(): void {
    this.#failures = 0
    this.#dueAt = Number.NEGATIVE_INFINITY
  }

  /** Returns the delay until the next attempt; 0 when it is due. */
  wait(now: number): number {
    return Math.max(0, this.#dueAt - now)
  }
}
