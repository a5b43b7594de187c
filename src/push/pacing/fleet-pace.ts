/**
 * Pauses that count are longer than this share of the limit; this many streams must have made one; a standstill is this many times as
 * long as the shortest of theirs, and at most so many times the limit. So many streams are remembered.
 */
const pauses = { share: 0.25, streams: 3, times: 4, most: 12, kept: 64 }

interface Pause {
  readonly ms: number
  readonly at: number
}

/**
 * For how long a stream may stand still. Where the streams of a writer are slow together, each makes progress only now and then,
 * and a pause as long as those of the others is no standstill. Pauses are those after which a stream went on, so peers that take
 * nothing do not lengthen the time that they are given, and peers that are fast do not shorten it. Times are monotonic milliseconds.
 */
export class FleetPace {
  /** Milliseconds that no stream is given less than. */
  readonly limitMs: number
  /** The longest pause of each stream that made a long one of late. */
  readonly #long = new Map<object, Pause>()

  /** `limitMs` is for streams whose neighbours are not slow; infinite = no stream is ended. */
  constructor(limitMs: number) {
    this.limitMs = limitMs
  }

  /** A stream went on at a time, after so many milliseconds without progress. */
  paused(stream: object, ms: number, at: number): void {
    if (!(ms > pauses.share * this.limitMs)) return
    const before = this.#long.get(stream)
    const longest = before && this.#isRecent(before, at) ? Math.max(before.ms, ms) : ms
    this.#long.delete(stream)
    this.#long.set(stream, { ms: longest, at })
    for (const [oldest] of this.#long) {
      if (this.#long.size <= pauses.kept) return
      this.#long.delete(oldest)
    }
  }

  /** Milliseconds after which a stream stands still, as of a time. */
  standstillMs(now: number): number {
    if (this.#long.size < pauses.streams) return this.limitMs
    for (const [stream, pause] of this.#long) if (!this.#isRecent(pause, now)) this.#long.delete(stream)
    const long = [...this.#long.values()].map(({ ms }) => ms).sort((one, other) => other - one)[pauses.streams - 1]
    return long === undefined ? this.limitMs : Math.min(Math.max(this.limitMs, pauses.times * long), pauses.most * this.limitMs)
  }

  #isRecent({ at }: Pause, now: number): boolean {
    return now - at <= pauses.most * this.limitMs
  }
}
