/** When the next push of changes is due, and what led to it. */
import { Debounce, type DebounceOptions } from '../../../src/push/pacing/debounce.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** What a push is about. */
export interface DuePush {
  readonly reasons: readonly string[]
  /** When the first event that led to it was seen, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly events: number
}

/** Has pushes begun at their time, the first of them by hand. */
export class PushSchedule {
  readonly #debounce: Debounce
  readonly #isUrgent: boolean
  readonly #push: () => void
  #reasons = new Set<string>()
  #startedAt = 0
  #timer: Timer | undefined
  #hasBegun = false

  /** `edsDebounced` says whether changes of endpoints wait for others; `push` is called when a push is due. */
  constructor(options: DebounceOptions, edsDebounced: boolean, push: () => void) {
    this.#debounce = new Debounce(options)
    this.#isUrgent = !edsDebounced
    this.#push = push
  }

  /** Something changed that was seen at a time; `onlyEndpoints` says whether all that waits is changes of endpoints. */
  changed(reason: string, at: number, onlyEndpoints: boolean): void {
    this.#reasons.add(reason)
    if (this.#debounce.events === 0) this.#startedAt = at
    this.#debounce.event(monotonicMs(), { urgent: onlyEndpoints && this.#isUrgent, onlyEndpoints })
    this.#arm()
  }

  /** A push begins; the next waits until it is {@link done}. */
  begin(): DuePush {
    const due = { reasons: [...this.#reasons], startedAt: this.#startedAt || monotonicMs(), events: this.#debounce.events }
    this.#debounce.begin()
    this.#reasons = new Set()
    this.#hasBegun = true
    return due
  }

  /** The push that began last is done. */
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
    this.#timer = after(wait, () => (this.#debounce.wait(monotonicMs()) === 0 ? this.#push() : this.#arm()))
  }
}
