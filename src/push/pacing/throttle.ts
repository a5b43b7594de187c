/** The queue of the connections of a writer that wait for a push (docs/resources.md, Q2). */
import type { PermitSource } from './permits.ts'

/**
 * The queue that a waiting item is in: `trusted` items are known to read; `passed` items have passed their trial and are in the middle of
 * their work; `trial` items need no permit, because their work begins with a trial.
 */
type Lane = 'trusted' | 'passed' | 'trial'

/**
 * A queue of push targets, each in it at most once, of which a limited number is worked on at a time (docs/resources.md, Q2). For targets
 * that have not yet shown that they read (new ones, and those that were slow) the work begins on trial, without a permit; when they pass
 * the trial they wait for a permit in a lane of their own. However many targets connect at once, the connected ones still get their
 * changes.
 */
export class Throttle<T> {
  readonly #permits: PermitSource
  /** The waiting items with the time since which they wait. */
  readonly #lanes: Readonly<Record<Lane, Map<T, number>>> = { trusted: new Map(), passed: new Map(), trial: new Map() }
  #turn: 'trusted' | 'passed' = 'trusted'
  #trialTurn = true
  /** Items whose work has begun and is not complete. */
  readonly #active = new Set<T>()
  /** Active items on trial, and active items whose permit was released early or whose trial failed. Neither hold a permit. */
  readonly #onTrial = new Set<T>()
  readonly #releasedEarly = new Set<T>()
  /** Active items that are queued again when their work is done, with the time since which they wait. */
  readonly #requeued = new Map<T, number>()

  constructor(permits: PermitSource) {
    this.#permits = permits
  }

  /** The number of items that wait for a permit. */
  get waiting(): number {
    return this.#lanes.trusted.size + this.#lanes.passed.size
  }

  /** Active items without a permit because they were too slow to keep one or to pass their trial. */
  get releasedEarly(): ReadonlySet<T> {
    return this.#releasedEarly
  }

  /** Queues an item. An item that already waits keeps its place; an active item is queued again when its work is done. */
  add(item: T, since: number, trial = false): void {
    const queue = this.#active.has(item) ? this.#requeued : this.#lanes[trial ? 'trial' : 'trusted']
    if (!queue.has(item) && (queue === this.#requeued || !this.#waits(item))) queue.set(item, since)
  }

  /** Whether the work on an item may go on only to the end of its trial. */
  isOnTrial(item: T): boolean {
    return this.#onTrial.has(item)
  }

  /** Whether an item has passed its trial and is paused until there is a permit for it. */
  isPaused(item: T): boolean {
    return this.#lanes.passed.has(item)
  }

  /** Called when an active item has passed its trial: `take` returns it once more when there is a permit for it. */
  passed(item: T, since: number): void {
    if (this.#onTrial.has(item)) this.#lanes.passed.set(item, since)
  }

  /** Takes the next item to work on, in turn from the trial lane and from the lanes that need a free permit. */
  take(): { item: T; since: number } | undefined {
    this.#trialTurn = !this.#trialTurn
    return this.#trialTurn ? (this.#takeOnTrial() ?? this.#takeWithPermit()) : (this.#takeWithPermit() ?? this.#takeOnTrial())
  }

  #takeOnTrial(): { item: T; since: number } | undefined {
    const taken = this.#first('trial')
    if (taken) this.#onTrial.add(taken.item)
    return taken
  }

  #takeWithPermit(): { item: T; since: number } | undefined {
    if (this.waiting === 0 || !this.#permits.acquire()) return undefined
    const other = this.#turn === 'trusted' ? 'passed' : 'trusted'
    const lane = this.#lanes[this.#turn].size > 0 ? this.#turn : other
    this.#turn = lane === 'trusted' ? 'passed' : 'trusted'
    const taken = this.#first(lane)
    if (taken) this.#onTrial.delete(taken.item)
    return taken
  }

  #first(lane: Lane): { item: T; since: number } | undefined {
    for (const [item, since] of this.#lanes[lane]) {
      this.#lanes[lane].delete(item)
      this.#active.add(item)
      return { item, since }
    }
    return undefined
  }

  /**
   * Called when the work on an item takes too long, or its trial does: its permit, if any, is released, and the work completes without one.
   */
  releaseEarly(item: T): void {
    if (!this.#active.has(item) || this.#releasedEarly.has(item)) return
    this.#releasedEarly.add(item)
    this.#lanes.passed.delete(item)
    if (!this.#onTrial.delete(item)) this.#permits.release()
  }

  /**
   * Called when the work on an item is complete; its permit is released. `trial`: the lane in which the item waits if it was queued again.
   */
  done(item: T, trial = false): void {
    this.#endWork(item)
    const since = this.#requeued.get(item)
    if (since === undefined) return
    this.#requeued.delete(item)
    this.#lanes[trial ? 'trial' : 'trusted'].set(item, since)
  }

  /** Removes an item from all lanes and ends the work on it. */
  drop(item: T): void {
    for (const lane of Object.values(this.#lanes)) lane.delete(item)
    this.#requeued.delete(item)
    this.#endWork(item)
  }

  #waits(item: T): boolean {
    return Object.values(this.#lanes).some((lane) => lane.has(item))
  }

  #endWork(item: T): void {
    this.#lanes.passed.delete(item)
    const without = this.#onTrial.delete(item) || this.#releasedEarly.delete(item)
    if (this.#active.delete(item) && !without) this.#permits.release()
  }
}
