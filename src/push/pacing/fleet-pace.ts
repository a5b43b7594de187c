/**
 * How many of the last pauses are looked at, and how many there must be; which share of them a long one exceeds; how many times as
 * long is no standstill yet, and how many times the limit that becomes at most.
 */
const pauses = { kept: 32, least: 16, share: 0.9, times: 4, most: 12 }

/**
 * For how long a stream may stand still. Where the streams of a writer are slow together, each makes progress only now and then,
 * and a pause as long as those of the others is no standstill. Pauses are those after which a stream went on, so peers that take
 * nothing do not lengthen the time that they are given.
 */
export class FleetPace {
  readonly #limitMs: number
  readonly #kept: number[] = []
  #next = 0
  #standstillMs: number | undefined

  /** `limitMs` is for streams whose neighbours are not slow; infinite = no stream is ended. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** A stream went on after so many milliseconds without progress. */
  paused(ms: number): void {
    this.#kept[this.#next] = ms
    this.#next = (this.#next + 1) % pauses.kept
    this.#standstillMs = undefined
  }

  /** Milliseconds after which a stream stands still. */
  get standstillMs(): number {
    if (this.#standstillMs !== undefined) return this.#standstillMs
    const sorted = this.#kept.toSorted((one, other) => one - other)
    const long = sorted.length < pauses.least ? 0 : (sorted[Math.floor(sorted.length * pauses.share)] as number)
    this.#standstillMs = Math.min(Math.max(this.#limitMs, pauses.times * long), pauses.most * this.#limitMs)
    return this.#standstillMs
  }

  /** Nothing is under way any more: what comes next may be faster. */
  forget(): void {
    this.#kept.length = 0
    this.#next = 0
    this.#standstillMs = undefined
  }
}
