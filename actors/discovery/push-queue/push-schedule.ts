/** The timer of the pushes of changes (`PushRounds`): begins a push when one is due, and ends the wait for writers that are late. */
import { type Change, type DebounceOptions, type DueCause, type DuePush, PushRounds } from '../../../src/push/pacing/rounds.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** Events of a schedule that are counted. */
export interface ScheduleEvents {
  /** A change came; `waits`: others wait already, and the quiet period begins again. */
  changed(waits: boolean): void
  due(cause: DueCause): void
}

/** Calls `push` when a push is due. The first push is begun by the owner, with {@link begin}. */
export class PushSchedule {
  readonly #rounds: PushRounds
  readonly #pushesEndpointsAtOnce: boolean
  readonly #push: () => void
  readonly #counted: ScheduleEvents
  #timer: Timer | undefined

  /** `edsDebounced`: whether endpoint changes are debounced like others; if not, they are pushed at once. */
  constructor(options: DebounceOptions, edsDebounced: boolean, push: () => void, counted: ScheduleEvents) {
    this.#rounds = new PushRounds(options)
    this.#pushesEndpointsAtOnce = !edsDebounced
    this.#push = push
    this.#counted = counted
  }

  /**
   * Adds a change. `at` is when the source saw it, in monotonic milliseconds; `onlyEndpoints` says whether all pending changes are
   * endpoint changes.
   */
  changed(reason: string, at: number, onlyEndpoints: boolean): void {
    const change: Change = { reason, at, isUrgent: onlyEndpoints && this.#pushesEndpointsAtOnce, onlyEndpoints }
    this.#counted.changed(this.#rounds.changed(change, monotonicMs()))
    this.#arm()
  }

  /** Takes the pending changes for a push that begins now. The next push is not started until this one was answered, or sent to nobody. */
  begin(): DuePush {
    return this.#rounds.begin(monotonicMs())
  }

  /** The push that was begun was sent to these writers; to none if nothing was to be sent. */
  sent(push: number, writers: Iterable<string>): void {
    this.#rounds.sent(push, writers, monotonicMs())
    this.#arm()
  }

  /** A writer has answered a push. */
  answered(writer: string, push: number): void {
    this.#rounds.answered(writer, push)
    this.#arm()
  }

  /** A writer has ended. */
  gone(writer: string): void {
    this.#rounds.gone(writer)
    this.#arm()
  }

  close(): void {
    this.#timer?.cancel()
  }

  #arm(): void {
    this.#timer?.cancel()
    const wait = this.#rounds.wait(monotonicMs())
    if (wait === undefined) return
    this.#timer = after(wait, () => {
      const cause = this.#rounds.check(monotonicMs())
      if (cause === undefined) return this.#arm()
      this.#counted.due(cause)
      this.#push()
    })
  }
}
