import type { PermitSource } from './permits.ts'

/**
 * The queue a waiting item is in: items known to read (`there`), items that passed their trial and need a permit, and items still to be
 * tried, which need no permit.
 */
type Lane = 'there' | 'passed' | 'trial'

/**
 * A queue of push targets, each in it at most once, of which a limited number is worked on at a time (docs/resources.md, Q2). For targets
 * that have not yet shown that they read (new ones, and those that were slow) the work begins on trial, without a permit; when they pass
 * the trial they wait for a permit in a lane of their own. However many targets connect at once, the connected ones still get their
 * changes.
 */
export class Throttle<T> {
  readonly #permits: PermitSource
  /** The waiting items with the time since which they wait. */
  readonly #lanes: Readonly<Record<Lane, Map<T, number>>> = { there: new Map(), passed: new Map(), trial: new Map() }
  #turn: 'there' | 'passed' = 'there'
  #trialTurn = true
  readonly #active = new Set<T>()
  /** Active items on trial, and active items whose permit was released early or whose trial failed. Neither hold a permit. */
  readonly #onTrial = new Set<T>()
  readonly #early = new Set<T>()
  readonly #again = new Map<T, number>()

  constructor(permits: PermitSource) {
    this.#permits = permits
  }

  /** The number of items that wait for a permit. */
  get waiting(): number {
    return this.#lanes.there.size + this.#lanes.passed.size
  }

  get active(): number {
    return this.#active.size
  }

  /** Active items without a permit because they were too slow to keep one or to pass their trial. */
  get releasedEarly(): ReadonlySet<T> {
    return this.#early
  }

  /** Queues an item. An item that already waits keeps its place; an active item is queued again when its work is done. */
  add(thing: T, since: number, trial = false): void {
    const queue = this.#active.has(thing) ? this.#again : this.#lanes[trial ? 'trial' : 'there']
    if (!queue.has(thing) && (queue === this.#again || !this.#waits(thing))) queue.set(thing, since)
  }

  /** Whether the work on an item may go on only to the end of its trial. */
  isOnTrial(thing: T): boolean {
    return this.#onTrial.has(thing)
  }

  /** Whether an item has passed its trial and is paused until there is a permit for it. */
  isPaused(thing: T): boolean {
    return this.#lanes.passed.has(thing)
  }

  /** Called when an active item has passed its trial: `take` returns it once more when there is a permit for it. */
  passed(thing: T, since: number): void {
    if (this.#onTrial.has(thing)) this.#lanes.passed.set(thing, since)
  }

  /** Takes the next item to work on, in turn from the trial lane and from the lanes that need a free permit. */
  take(): { thing: T; since: number } | undefined {
    this.#trialTurn = !this.#trialTurn
    return this.#trialTurn ? (this.#takeOnTrial() ?? this.#takeWithPermit()) : (this.#takeWithPermit() ?? this.#takeOnTrial())
  }

  #takeOnTrial(): { thing: T; since: number } | undefined {
    const taken = this.#first('trial')
    if (taken) this.#onTrial.add(taken.thing)
    return taken
  }

  #takeWithPermit(): { thing: T; since: number } | undefined {
    if (this.waiting === 0 || !this.#permits.acquire()) return undefined
    const other = this.#turn === 'there' ? 'passed' : 'there'
    const lane = this.#lanes[this.#turn].size > 0 ? this.#turn : other
    this.#turn = lane === 'there' ? 'passed' : 'there'
    const taken = this.#first(lane)
    if (taken) this.#onTrial.delete(taken.thing)
    return taken
  }

  #first(lane: Lane): { thing: T; since: number } | undefined {
    for (const [thing, since] of this.#lanes[lane]) {
      this.#lanes[lane].delete(thing)
      this.#active.add(thing)
      return { thing, since }
    }
    return undefined
  }

  /**
   * Called when the work on an item takes too long, or its trial does: its permit, if any, is released, and the work completes without one.
   */
  releaseEarly(thing: T): void {
    if (!this.#active.has(thing) || this.#early.has(thing)) return
    this.#early.add(thing)
    this.#lanes.passed.delete(thing)
    if (!this.#onTrial.delete(thing)) this.#permits.release()
  }

  /**
   * Called when the work on an item is complete; its permit is released. `trial`: the lane in which the item waits if it was queued again.
   */
  done(thing: T, trial = false): void {
    this.#end(thing)
    const since = this.#again.get(thing)
    if (since === undefined) return
    this.#again.delete(thing)
    this.#lanes[trial ? 'trial' : 'there'].set(thing, since)
  }

  /** Removes an item from all lanes and ends the work on it. */
  drop(thing: T): void {
    for (const lane of Object.values(this.#lanes)) lane.delete(thing)
    this.#again.delete(thing)
    this.#end(thing)
  }

  #waits(thing: T): boolean {
    return Object.values(this.#lanes).some((lane) => lane.has(thing))
  }

  #end(thing: T): void {
    this.#lanes.passed.delete(thing)
    const without = this.#onTrial.delete(thing) || this.#early.delete(thing)
    if (this.#active.delete(thing) && !without) this.#permits.release()
  }
}
