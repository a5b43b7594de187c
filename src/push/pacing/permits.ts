/**
 * Permits that several writers share: at most so many responses are half sent in the whole process (`PILOT_PUSH_THROTTLE`). The
 * count lives in shared memory, one word for each writer, and belongs to one incarnation of it: when a writer has ended, its
 * permits are taken back, and what a dead incarnation still does has no effect.
 */

/** Places in the shared words: a counter that moves when permits come back, then three words for each writer. */
const wake = 0
const wordOf = (writer: number): number => 1 + writer * 3
const wantOf = (writer: number): number => wordOf(writer) + 1
const aliveOf = (writer: number): number => wordOf(writer) + 2

/** The lower half of a word are the permits held, the upper half is the incarnation that holds them. */
const heldMask = 0xffff
const incarnationMask = 0x7fff
const incarnationIn = (word: number): number => (word >>> 16) & incarnationMask

/** Permits of a writer that has not said anything for so many milliseconds are not counted: it is blocked, and cannot give them back. */
const blockedMs = 1000
/** How long a writer that has its share of the permits and gave one back lets others come first, in milliseconds. */
const courtesyMs = 20

/** Shared memory for the permits of so many writers. */
export function permitWords(writers: number): SharedArrayBuffer {
  return new SharedArrayBuffer((1 + writers * 3) * Int32Array.BYTES_PER_ELEMENT)
}

/** Takes back all permits of a writer that has ended. */
export function reclaimPermits(shared: SharedArrayBuffer, writer: number): void {
  const words = new Int32Array(shared)
  const word = Atomics.load(words, wordOf(writer))
  Atomics.store(words, wordOf(writer), ((incarnationIn(word) + 1) & incarnationMask) << 16)
  Atomics.store(words, wantOf(writer), 0)
  Atomics.add(words, wake, 1)
  Atomics.notify(words, wake)
}

/** Where permits come from. */
export interface PermitSource {
  /** Takes a permit if one is free. */
  acquire(): boolean
  /** Gives one back. */
  release(): void
}

/** The permits of one incarnation of a writer. */
export class SharedPermits implements PermitSource {
  readonly #words: Int32Array
  readonly #writer: number
  readonly #writers: number
  readonly #most: number
  readonly #now: () => number
  readonly #incarnation: number
  /** Until when others come first. */
  #courteousUntil = 0
  /** What the counter was moved to by the last release that woke others. */
  #givenAt: number | undefined
  /** When the wait that is under way ends at the latest; infinite = none is. */
  #waitEnds = Number.POSITIVE_INFINITY

  /** At most `most` permits are out among all writers. `now` is monotonic time in milliseconds, the same in all threads. */
  constructor(shared: SharedArrayBuffer, writer: number, most: number, now: () => number) {
    this.#words = new Int32Array(shared)
    this.#writer = writer
    this.#writers = (this.#words.length - 1) / 3
    this.#most = Math.min(Math.max(1, most), heldMask)
    this.#now = now
    this.#incarnation = incarnationIn(Atomics.load(this.#words, wordOf(writer)))
  }

  acquire(): boolean {
    const now = this.#now()
    if (now < this.#courteousUntil && this.#hasItsShare()) return false
    this.alive()
    for (;;) {
      if (this.#out(now) >= this.#most || !this.#change(1)) return false
      if (this.#out(now) <= this.#most) return true
      // Another writer took the last one at the same time. Of all that give theirs back, the last sees that one is free.
      this.#change(-1)
    }
  }

  release(): void {
    if (!this.#change(-1)) return
    this.#givenAt = this.#passOn()
    if (this.#givenAt !== undefined) this.#courteousUntil = this.#now() + courtesyMs
  }

  /** Says that this writer is not blocked: at least every half second while it holds permits. */
  alive(): void {
    Atomics.store(this.#words, aliveOf(this.#writer), this.#now() | 0)
  }

  /** Asks to be told when a permit comes back. One more try to acquire has to follow, before {@link whenFreed}. Returns what that needs. */
  want(): number {
    this.alive()
    Atomics.store(this.#words, wantOf(this.#writer), 1)
    return Atomics.load(this.#words, wake)
  }

  /**
   * Calls back when a permit may be free: something came back since {@link want}, or this writer has let others come first for long
   * enough. A wait that is under way and ends as soon serves for this one too; a longer one does not. A release of this writer's own
   * wakes its waits as well; they go on, so that others come first.
   */
  whenFreed(since: number, then: () => void): void {
    const now = this.#now()
    const end = now < this.#courteousUntil ? this.#courteousUntil : now + blockedMs
    if (this.#waitEnds <= end) return
    this.#waitEnds = end
    const { value } = Atomics.waitAsync(this.#words, wake, since, end - now)
    void Promise.resolve(value).then((how) => {
      if (this.#waitEnds === end) this.#waitEnds = Number.POSITIVE_INFINITY
      const counter = Atomics.load(this.#words, wake)
      const wokenByItself = how !== 'timed-out' && counter === this.#givenAt
      if (wokenByItself && this.#now() < this.#courteousUntil) {
        this.whenFreed(counter, then)
        return
      }
      this.#courteousUntil = 0
      then()
    })
  }

  /** Nothing waits for a permit any more: the next that is free is for another writer. */
  satisfied(): void {
    if (Atomics.exchange(this.#words, wantOf(this.#writer), 0) === 1) this.#passOn()
  }

  /** Wakes the writers that wait. Returns what the counter moved to; undefined when no other waits. */
  #passOn(): number | undefined {
    if (this.#othersWanting() === 0) return undefined
    const before = Atomics.add(this.#words, wake, 1)
    Atomics.notify(this.#words, wake)
    return (before + 1) | 0
  }

  /** Whether this writer holds as many permits as it would if they were spread evenly over those that want some. */
  #hasItsShare(): boolean {
    const held = Atomics.load(this.#words, wordOf(this.#writer)) & heldMask
    return held >= Math.floor(this.#most / (this.#othersWanting() + 1))
  }

  /** How many other writers wait for a permit. One that is blocked could not take it. */
  #othersWanting(): number {
    const now = this.#now()
    let wanting = 0
    for (let writer = 0; writer < this.#writers; writer++) {
      if (writer === this.#writer || Atomics.load(this.#words, wantOf(writer)) === 0) continue
      if (this.#silentMs(writer, now) < 2 * blockedMs) wanting++
    }
    return wanting
  }

  /** Permits that are out, those of blocked writers left out. */
  #out(now: number): number {
    let out = 0
    for (let writer = 0; writer < this.#writers; writer++) {
      const held = Atomics.load(this.#words, wordOf(writer)) & heldMask
      if (held > 0 && (writer === this.#writer || this.#silentMs(writer, now) < blockedMs)) out += held
    }
    return out
  }

  /** Milliseconds for which a writer has said nothing, in the 32 bits that a word has. */
  #silentMs(writer: number, now: number): number {
    return ((now | 0) - Atomics.load(this.#words, aliveOf(writer))) | 0
  }

  /** Changes the number that this writer holds. Returns false when this incarnation of it is over. */
  #change(by: 1 | -1): boolean {
    const at = wordOf(this.#writer)
    for (;;) {
      const word = Atomics.load(this.#words, at)
      if (incarnationIn(word) !== this.#incarnation) return false
      if (Atomics.compareExchange(this.#words, at, word, word + by) === word) return true
    }
  }
}
