/**
 * Permits shared by several writers: they limit the number of responses that are partly sent in the whole process (`PILOT_PUSH_THROTTLE`).
 * The counts are in shared memory, one word for each writer, and belong to one incarnation of the writer: the permits of a writer that has
 * ended are reclaimed, and a dead incarnation can change nothing.
 */

/** Indices in the shared words: a counter that is incremented when permits are released, then three words for each writer. */
const wake = 0
const wordOf = (writer: number): number => 1 + writer * 3
const wantOf = (writer: number): number => wordOf(writer) + 1
const aliveOf = (writer: number): number => wordOf(writer) + 2

/** The lower 16 bits of a word are the number of permits held, the upper 16 bits are the incarnation that holds them. */
const heldMask = 0xffff
const incarnationMask = 0x7fff
const incarnationIn = (word: number): number => (word >>> 16) & incarnationMask

/**
 * Permits of a writer that has not called `alive` for this many milliseconds are not counted: its thread is blocked and cannot release
 * them.
 */
const blockedMs = 1000
/**
 * How long a writer that holds its share of the permits takes no further one after it released one while other writers wait, in
 * milliseconds.
 */
const yieldMs = 20

/** Allocates the shared memory for the permits of `writers` writers. */
export function permitWords(writers: number): SharedArrayBuffer {
  return new SharedArrayBuffer((1 + writers * 3) * Int32Array.BYTES_PER_ELEMENT)
}

/** Reclaims all permits of a writer that has ended. */
export function reclaimPermits(shared: SharedArrayBuffer, writer: number): void {
  const words = new Int32Array(shared)
  const word = Atomics.load(words, wordOf(writer))
  Atomics.store(words, wordOf(writer), ((incarnationIn(word) + 1) & incarnationMask) << 16)
  Atomics.store(words, wantOf(writer), 0)
  Atomics.add(words, wake, 1)
  Atomics.notify(words, wake)
}

/** The permits of one incarnation of a writer. */
export class SharedPermits {
  readonly #words: Int32Array
  readonly #writer: number
  readonly #writers: number
  readonly #most: number
  readonly #now: () => number
  readonly #incarnation: number
  /** The time, in monotonic milliseconds, until which this writer takes no permit beyond its share. */
  #yieldsUntil = 0
  /** The value of the counter after this writer's last release that woke others. */
  #givenAt: number | undefined
  /** The deadline of the wait under way. Infinite: there is none. */
  #waitEnds = Number.POSITIVE_INFINITY

  /** `most`: the maximum number of permits over all writers. `now`: monotonic time in milliseconds, the same clock in all threads. */
  constructor(shared: SharedArrayBuffer, writer: number, most: number, now: () => number) {
    this.#words = new Int32Array(shared)
    this.#writer = writer
    this.#writers = (this.#words.length - 1) / 3
    this.#most = Math.min(Math.max(1, most), heldMask)
    this.#now = now
    this.#incarnation = incarnationIn(Atomics.load(this.#words, wordOf(writer)))
  }

  /** Takes a permit if one is free. Returns whether it did. */
  acquire(): boolean {
    const now = this.#now()
    if (now < this.#yieldsUntil && this.#hasItsShare()) return false
    this.alive()
    for (;;) {
      if (this.#out(now) >= this.#most || !this.#change(1)) return false
      if (this.#out(now) <= this.#most) return true
      // Another writer took the last permit at the same time. When several writers release for this reason, the last one sees that a permit
      // is free.
      this.#change(-1)
    }
  }

  /** Releases one permit. */
  release(): void {
    if (!this.#change(-1)) return
    this.#givenAt = this.#passOn()
    if (this.#givenAt !== undefined) this.#yieldsUntil = this.#now() + yieldMs
  }

  /** Marks this writer as not blocked. To be called at least every half second while it holds permits. */
  alive(): void {
    Atomics.store(this.#words, aliveOf(this.#writer), this.#now() | 0)
  }

  /**
   * Registers this writer as waiting for a permit. The caller has to try `acquire` once more before it calls {@link whenFreed} with the
   * counter value returned here.
   */
  want(): number {
    this.alive()
    Atomics.store(this.#words, wantOf(this.#writer), 1)
    return Atomics.load(this.#words, wake)
  }

  /**
   * Calls `then` when a permit may be free: the counter has changed since {@link want}, or the time in which others come first is over.
   * When a wait under way ends no later, it serves this call too and no second one is started. A release by this writer itself does not end
   * its own wait, so that other writers come first.
   */
  whenFreed(since: number, then: () => void): void {
    const now = this.#now()
    const end = now < this.#yieldsUntil ? this.#yieldsUntil : now + blockedMs
    if (this.#waitEnds <= end) return
    this.#waitEnds = end
    const { value } = Atomics.waitAsync(this.#words, wake, since, end - now)
    void Promise.resolve(value).then((how) => {
      if (this.#waitEnds === end) this.#waitEnds = Number.POSITIVE_INFINITY
      const counter = Atomics.load(this.#words, wake)
      const wokenByItself = how !== 'timed-out' && counter === this.#givenAt
      if (wokenByItself && this.#now() < this.#yieldsUntil) {
        this.whenFreed(counter, then)
        return
      }
      this.#yieldsUntil = 0
      then()
    })
  }

  /** Called when nothing in this writer waits for a permit any more, so that the next free one goes to another writer. */
  satisfied(): void {
    if (Atomics.exchange(this.#words, wantOf(this.#writer), 0) === 1) this.#passOn()
  }

  /** Wakes the writers that wait. Returns the new value of the counter, or undefined when no other writer waits. */
  #passOn(): number | undefined {
    if (this.#othersWanting() === 0) return undefined
    const before = Atomics.add(this.#words, wake, 1)
    Atomics.notify(this.#words, wake)
    return (before + 1) | 0
  }

  /** Whether this writer holds at least an even share of the permits among the writers that need some. */
  #hasItsShare(): boolean {
    const held = Atomics.load(this.#words, wordOf(this.#writer)) & heldMask
    return held >= Math.floor(this.#most / (this.#othersWanting() + 1))
  }

  /** The number of other writers that wait for a permit. Blocked writers are left out because they could not take one. */
  #othersWanting(): number {
    const now = this.#now()
    let wanting = 0
    for (let writer = 0; writer < this.#writers; writer++) {
      if (writer === this.#writer || Atomics.load(this.#words, wantOf(writer)) === 0) continue
      if (this.#silentMs(writer, now) < 2 * blockedMs) wanting++
    }
    return wanting
  }

  /** The number of permits held, without those of blocked writers. */
  #out(now: number): number {
    let out = 0
    for (let writer = 0; writer < this.#writers; writer++) {
      const held = Atomics.load(this.#words, wordOf(writer)) & heldMask
      if (held > 0 && (writer === this.#writer || this.#silentMs(writer, now) < blockedMs)) out += held
    }
    return out
  }

  /** Milliseconds since a writer last called `alive`, in 32-bit arithmetic as its word holds 32 bits. */
  #silentMs(writer: number, now: number): number {
    return ((now | 0) - Atomics.load(this.#words, aliveOf(writer))) | 0
  }

  /** Changes the number of permits that this writer holds. Returns false when this incarnation of the writer is over. */
  #change(by: 1 | -1): boolean {
    const at = wordOf(this.#writer)
    for (;;) {
      const word = Atomics.load(this.#words, at)
      if (incarnationIn(word) !== this.#incarnation) return false
      if (Atomics.compareExchange(this.#words, at, word, word + by) === word) return true
    }
  }
}

/** What gives permits to the pushes of a writer. */
export type PermitSource = Pick<SharedPermits, 'acquire' | 'release' | 'alive' | 'want' | 'whenFreed' | 'satisfied'>
