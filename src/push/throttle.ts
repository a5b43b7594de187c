/** A queue of things to push to, each at most once in it, of which only so many are worked on at a time (discovery behaviour 1.9). */
export class Throttle<T> {
  readonly #permits: number
  /** Waiting, with the time since which they wait. */
  readonly #waiting = new Map<T, number>()
  readonly #active = new Set<T>()
  readonly #again = new Map<T, number>()

  constructor(permits: number) {
    this.#permits = Math.max(1, permits)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  get active(): number {
    return this.#active.size
  }

  /** Queues a thing. One that waits already keeps its place; one that is worked on is queued again when it is done. */
  add(thing: T, since: number): void {
    const queue = this.#active.has(thing) ? this.#again : this.#waiting
    if (!queue.has(thing)) queue.set(thing, since)
  }

  /** Takes the next thing to work on, if a permit is free. */
  take(): { thing: T; since: number } | undefined {
    if (this.#active.size >= this.#permits) return undefined
    for (const [thing, since] of this.#waiting) {
      this.#waiting.delete(thing)
      this.#active.add(thing)
      return { thing, since }
    }
    return undefined
  }

  /** The work on a thing is done; its permit is free. */
  done(thing: T): void {
    this.#active.delete(thing)
    const since = this.#again.get(thing)
    if (since === undefined) return
    this.#again.delete(thing)
    this.#waiting.set(thing, since)
  }

  /** Forgets a thing altogether. */
  drop(thing: T): void {
    this.#waiting.delete(thing)
    this.#again.delete(thing)
    this.#active.delete(thing)
  }
}
