/** When something that goes out of date is obtained again: before its time is over, and after a failure with growing delays. */
import { BackOff, type FailureTerms, type Pauses } from './back-off.ts'

/**
 * A point in time by both clocks, in milliseconds. The wall clock may be set, and the monotonic clock stands still while the machine
 * sleeps.
 */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/** Returns the moment `ms` milliseconds after another. */
export const momentAfter = ({ wall, monotonic }: Moment, ms: number): Moment => ({ wall: wall + ms, monotonic: monotonic + ms })

/**
 * Returns the delay until something is due, in milliseconds, negative when it is overdue: it is due as soon as either clock has reached its
 * moment, so that it is not late after a sleep, or after the wall clock was set back.
 */
export const delayUntil = (due: Moment, now: Moment): number => Math.min(due.wall - now.wall, due.monotonic - now.monotonic)

/** The schedule. At any time the thing is up to date, being obtained, or waits after a failure; at first it is due. */
export class RenewalSchedule {
  readonly #backOff: BackOff
  #dueAt: Moment | undefined
  #retryAt: Moment | undefined
  #isBusy = false

  constructor(pauses: Pauses) {
    this.#backOff = new BackOff(pauses)
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#backOff.failures
  }

  /** Returns the delay until the next attempt, in milliseconds; 0 when it is due, infinite during one. */
  wait(now: Moment): number {
    if (this.#isBusy) return Number.POSITIVE_INFINITY
    return Math.max(0, this.#dueAt ? delayUntil(this.#dueAt, now) : 0, this.#retryAt ? delayUntil(this.#retryAt, now) : 0)
  }

  /** Records that an attempt has begun. */
  begun(): void {
    this.#isBusy = true
  }

  /** Records that the attempt has yielded the thing: from here on {@link dueIn} and {@link dueWithin} are about this one. */
  obtained(now: Moment): void {
    this.#isBusy = false
    this.#retryAt = undefined
    this.dueIn(Number.POSITIVE_INFINITY, now)
  }

  /** Records that what was obtained can be used, for `nextMs` unless it is due earlier. */
  succeeded(nextMs: number, now: Moment): void {
    this.#backOff.succeeded()
    this.dueWithin(nextMs, now)
  }

  /** Records a failure. Returns the delay until the next attempt. `chance` is a random number from 0 to 1. */
  failed(now: Moment, chance: number, terms?: FailureTerms): number {
    this.#isBusy = false
    this.dueIn(0, now)
    const wait = this.#backOff.failed(now.monotonic, chance, terms)
    this.#retryAt = momentAfter(now, wait)
    return wait
  }

  /** Makes the thing due after a delay, whenever it was due before. */
  dueIn(ms: number, now: Moment): void {
    this.#dueAt = momentAfter(now, ms)
  }

  /** Makes the thing due after a delay, unless an attempt is due earlier. */
  dueWithin(ms: number, now: Moment): void {
    if (this.wait(now) > ms) this.dueIn(ms, now)
  }

  /** Ends the delay after a failure: its reason may be gone. */
  retryNow(): void {
    this.#retryAt = undefined
  }
}
