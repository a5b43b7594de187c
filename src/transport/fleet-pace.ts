/**
 * A pause is recorded when it is longer than `share` of the limit. When at least `streams` streams have recorded pauses, the standstill
 * timeout is `times` the shortest of the `streams` longest ones, and at most `most` times the limit. `kept` is the maximum number of
 * streams with recorded pauses.
 */
const pauses = { share: 0.25, streams: 3, times: 4, most: 12, kept: 64 }

interface Pause {
  readonly ms: number
  readonly at: number
}

/**
 * Computes how long a stream may make no progress before it counts as standing still. Where all streams of a writer are slow, each of them
 * progresses only now and then, and a pause as long as those of the other streams is no standstill. A pause is recorded only when the
 * stream goes on, so peers that read nothing do not lengthen the timeout, and fast peers do not shorten it. Times are monotonic
 * milliseconds.
 */
export class FleetPace {
  /** The minimum of the standstill timeout, in milliseconds. */
  readonly limitMs: number
  /** The longest recent pause of each stream, only pauses above the threshold. */
  readonly #long = new Map<object, Pause>()
  /** The last result of {@link standstillMs}, and until when it holds if no pause is recorded before. */
  #known: { readonly ms: number; readonly until: number } | undefined

  /** `limitMs`: the timeout in milliseconds while the other streams are not slow. Infinite: no stream is ended. */
  constructor(limitMs: number) {
    this.limitMs = limitMs
  }

  /** Records that a stream made progress at time `at` after `ms` milliseconds without any. */
  paused(stream: object, ms: number, at: number): void {
    if (!(ms > pauses.share * this.limitMs)) return
    const before = this.#long.get(stream)
    const longest = before && this.#isRecent(before, at) ? Math.max(before.ms, ms) : ms
    this.#known = undefined
    this.#long.delete(stream)
    this.#long.set(stream, { ms: longest, at })
    for (const [oldest] of this.#long) {
      if (this.#long.size <= pauses.kept) return
      this.#long.delete(oldest)
    }
  }

  /** Milliseconds without progress after which a stream counts as standing still, as of `now`. */
  standstillMs(now: number): number {
    if (this.#long.size < pauses.streams) return this.limitMs
    // Called for every slow connection, much more often than a pause is recorded.
    if (this.#known && now <= this.#known.until) return this.#known.ms
    let until = Number.POSITIVE_INFINITY
    for (const [stream, pause] of this.#long) {
      if (this.#isRecent(pause, now)) until = Math.min(until, pause.at + pauses.most * this.limitMs)
      else this.#long.delete(stream)
    }
    const long = [...this.#long.values()].map(({ ms }) => ms).sort((one, other) => other - one)[pauses.streams - 1]
    const ms = long === undefined ? this.limitMs : Math.min(Math.max(this.limitMs, pauses.times * long), pauses.most * this.limitMs)
    this.#known = { ms, until }
    return ms
  }

  #isRecent({ at }: Pause, now: number): boolean {
    return now - at <= pauses.most * this.limitMs
  }
}
