/** Schedules pushes of changes: when the next push is due, and which changes led to it. */
import { Debounce, type DebounceOptions, type DueCause } from '../../../src/push/pacing/debounce.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The changes behind a push that begins now. */
export interface DuePush {
  readonly reasons: readonly string[]
  /** When the first of these changes was seen, in monotonic milliseconds. */
  readonly startedAt: number
  readonly events: number
}

/** Events of a schedule that are counted. */
export interface ScheduleEvents {
  /** A change came; `waits`: others wait already, and the quiet period begins again. */
  changed(waits: boolean): void
  due(cause: DueCause): void
}

/** Debounces changes and calls `push` when a push is due. The first push is begun by the owner, with {@link begin}. */
export class PushSchedule {
  readonly #debounce: Debounce
  readonly #pushesEndpointsAtOnce: boolean
  readonly #push: () => void
  readonly #counted: ScheduleEvents
  #reasons = new Set<string>()
  #startedAt = 0
  #timer: Timer | undefined
  #hasBegun = false

  /**
   * `edsDebounced`: whether endpoint changes are debounced like others; if not, they are pushed at once. `push` is called when a push is
   * due.
   */
  constructor(options: DebounceOptions, edsDebounced: boolean, push: () => void, counted: ScheduleEvents) {
    this.#debounce = new Debounce(options)
    this.#pushesEndpointsAtOnce = !edsDebounced
    this.#push = push
    this.#counted = counted
  }

  /**
   * Adds a change. `at` is when the source saw it, in monotonic milliseconds; `onlyEndpoints` says whether all pending changes are
   * endpoint changes.
   */
  changed(reason: string, at: number, onlyEndpoints: boolean): void {
    this.#reasons.add(reason)
    this.#counted.changed(this.#debounce.events > 0)
    if (this.#debounce.events === 0) this.#startedAt = at
    this.#debounce.event(monotonicMs(), { urgent: onlyEndpoints && this.#pushesEndpointsAtOnce, onlyEndpoints })
    this.#arm()
  }

  /** Takes the pending changes for a push that begins now. The next push is not started until {@link done} is called. */
  begin(): DuePush {
    const due = { reasons: [...this.#reasons], startedAt: this.#startedAt || monotonicMs(), events: this.#debounce.events }
    this.#debounce.begin()
    this.#reasons = new Set()
    this.#hasBegun = true
    return due
  }

  /** Marks the last push as delivered, so that the next one may begin. */
  done(): void {
    this.#debounce.done()
    this.#arm()
  }

  close(): void {
    this.#timer?.cancel()
  }

  #arm(): void {
    this.#timer?.cancel()
    if (!this.#hasBegun) return
    const wait = this.#debounce.wait(monotonicMs())
    if (wait === undefined) return
    this.#timer = after(wait, () => {
      const now = monotonicMs()
      if (this.#debounce.wait(now) !== 0) return this.#arm()
      this.#counted.due(this.#debounce.cause(now))
      this.#push()
    })
  }
}
