import type { PermitSource } from './permits.ts'

/** Who waits: those who are there, those who have passed their trial, and those who are on trial and need no permit. */
type Lane = 'there' | 'passed' | 'trial'

/**
 * A queue of things to push to, each at most once in it, of which only so many are worked on at a time (docs/resources.md, Q2). Of whom it is not known
 * that they read, newcomers and those who were slow, the work begins without a permit, on trial; they ask for one once they have shown it. Then they wait
 * in a lane of their own, so that however many come at once, those who are there get their changes.
 */
export class Throttle<T> {
  readonly #permits: PermitSource
  /** Waiting, with the time since which they wait. */
  readonly #lanes: Readonly<Record<Lane, Map<T, number>>> = { there: new Map(), passed: new Map(), trial: new Map() }
  #turn: 'there' | 'passed' = 'there'
  #trialTurn = true
  readonly #active = new Set<T>()
  /** Those among the active that are on trial, and those whose permit was released early or that failed; neither has one. */
  readonly #onTrial = new Set<T>()
  readonly #early = new Set<T>()
  readonly #again = new Map<T, number>()

  constructor(permits: PermitSource) {
    this.#permits = permits
  }

  /** How many wait for a permit. */
  get waiting(): number {
    return this.#lanes.there.size + this.#lanes.passed.size
  }

  get active(): number {
    return this.#active.size
  }

  /** Things that are worked on without a permit, because they were too slow to keep or to get one. */
  get releasedEarly(): ReadonlySet<T> {
    return this.#early
  }

  /** Queues a thing. One that waits already keeps its place; one that is worked on is queued again when it is done. */
  add(thing: T, since: number, trial = false): void {
    const queue = this.#active.has(thing) ? this.#again : this.#lanes[trial ? 'trial' : 'there']
    if (!queue.has(thing) && (queue === this.#again || !this.#waits(thing))) queue.set(thing, since)
  }

  /** Whether the work on a thing goes on without a permit only as far as its trial. */
  isOnTrial(thing: T): boolean {
    return this.#onTrial.has(thing)
  }

  /** Whether a thing has passed its trial and waits for a permit, without which the work on it does not go on. */
  isPaused(thing: T): boolean {
    return this.#lanes.passed.has(thing)
  }

  /** A thing that is worked on has passed its trial: it is taken once more when there is a permit for it. */
  passed(thing: T, since: number): void {
    if (this.#onTrial.has(thing)) this.#lanes.passed.set(thing, since)
  }

  /** Takes the next thing to work on, one of each lane in turn: on trial whenever there is one, others if a permit is free. */
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

  /** The work on a thing takes so long that its permit goes to another, or that it gets none. It is worked on without one to its end. */
  releaseEarly(thing: T): void {
    if (!this.#active.has(thing) || this.#early.has(thing)) return
    this.#early.add(thing)
    this.#lanes.passed.delete(thing)
    if (!this.#onTrial.delete(thing)) this.#permits.release()
  }

  /** The work on a thing is done; its permit is free. If it is queued again, then on trial or not. */
  done(thing: T, trial = false): void {
    this.#end(thing)
    const since = this.#again.get(thing)
    if (since === undefined) return
    this.#again.delete(thing)
    this.#lanes[trial ? 'trial' : 'there'].set(thing, since)
  }

  /** Forgets a thing altogether. */
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
