import type { PermitSource } from './permits.ts'

/**
 * A queue of things to push to, each at most once in it, of which only so many are worked on at a time (docs/resources.md, Q2). Newcomers wait in a lane of their own, so that however many come at once, those who are there get their changes.
 */
export class Throttle<T> {
  readonly #permits: PermitSource
  /** Waiting, with the time since which they wait: those who are there, and newcomers. */
  readonly #lanes: readonly [Map<T, number>, Map<T, number>] = [new Map(), new Map()]
  #turn: 0 | 1 = 0
  readonly #active = new Set<T>()
  /** Those among the active whose permit was released early. */
  readonly #early = new Set<T>()
  readonly #again = new Map<T, number>()

  constructor(permits: PermitSource) {
    this.#permits = permits
  }

  get waiting(): number {
    return this.#lanes[0].size + this.#lanes[1].size
  }

  get active(): number {
    return this.#active.size
  }

  /** Things that are worked on without a permit, because it was released early. */
  get releasedEarly(): ReadonlySet<T> {
    return this.#early
  }

  /** Queues a thing. One that waits already keeps its place; one that is worked on is queued again when it is done. */
  add(thing: T, since: number, newcomer = false): void {
    if (this.#lanes.some((lane) => lane.has(thing))) return
    const queue = this.#active.has(thing) ? this.#again : this.#lanes[newcomer ? 1 : 0]
    if (!queue.has(thing)) queue.set(thing, since)
  }

  /** Takes the next thing to work on, if a permit is free: one of each lane in turn. */
  take(): { thing: T; since: number } | undefined {
    if (this.waiting === 0 || !this.#permits.acquire()) return undefined
    const lane = this.#lanes[this.#turn].size > 0 ? this.#turn : ((1 - this.#turn) as 0 | 1)
    for (const [thing, since] of this.#lanes[lane]) {
      this.#turn = (1 - lane) as 0 | 1
      this.#lanes[lane].delete(thing)
      this.#active.add(thing)
      return { thing, since }
    }
    return undefined
  }

  /** The work on a thing takes so long that its permit goes to another. It is worked on without one to its end. */
  releaseEarly(thing: T): void {
    if (!this.#active.has(thing) || this.#early.has(thing)) return
    this.#early.add(thing)
    this.#permits.release()
  }

  /** The work on a thing is done; its permit is free. */
  done(thing: T): void {
    this.#end(thing)
    const since = this.#again.get(thing)
    if (since === undefined) return
    this.#again.delete(thing)
    this.#lanes[0].set(thing, since)
  }

  /** Forgets a thing altogether. */
  drop(thing: T): void {
    for (const lane of this.#lanes) lane.delete(thing)
    this.#again.delete(thing)
    this.#end(thing)
  }

  #end(thing: T): void {
    if (this.#active.delete(thing) && !this.#early.delete(thing)) this.#permits.release()
  }
}
