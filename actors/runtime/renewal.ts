/** Obtains something that others provide and that goes out of date, again and again: key sets, roots, tokens, certificates. */
import type { FailureTerms, Pauses } from '../../src/model/back-off.ts'
import { type Moment, RenewalSchedule } from '../../src/model/renewal-schedule.ts'
import { chance } from './chance.ts'
import { monotonicMs, wallClockMs } from './clock.ts'
import { after, type Timer } from './timers.ts'

/** The maximum interval between two looks at the clocks, in milliseconds: timers do not run while the machine sleeps. */
const checkMs = 60_000

const now = (): Moment => ({ wall: wallClockMs(), monotonic: monotonicMs() })

/** What is obtained, and how. */
export interface RenewalParts<Thing> {
  /** The delays after failures. */
  readonly pauses: Pauses
  /** Obtains the thing. `failures`: how many attempts have failed since the last success. */
  obtain(failures: number): Promise<Thing>
  /** Uses what was obtained. Returns the delay until it is obtained again, in milliseconds. An error thrown is a failure. */
  use(thing: Thing): number
  /** Called after a failure, with their number since the last success, and the delay until the next attempt in milliseconds. */
  failed(error: Error, failures: number, waitMs: number): void
  /** Returns what else determines the delay after a failure. */
  terms?(error: Error): FailureTerms
}

/** Keeps one thing up to date, with one attempt at a time. What an attempt yields after {@link Renewal.close} is dropped. */
export class Renewal<Thing> {
  readonly #parts: RenewalParts<Thing>
  readonly #schedule: RenewalSchedule
  #timer: Timer | undefined
  /** The attempt under way. */
  #attempt: Promise<void> | undefined
  #isOutdated = false
  #isStarted = false
  #isClosed = false

  constructor(parts: RenewalParts<Thing>) {
    this.#parts = parts
    this.#schedule = new RenewalSchedule(parts.pauses)
  }

  /** The attempt under way, if any. It ends without an error. */
  get attempt(): Promise<void> | undefined {
    return this.#attempt
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#schedule.failures
  }

  /** The delay until the next attempt, in milliseconds; 0 when it is due, infinite during one. */
  get waitMs(): number {
    return this.#schedule.wait(now())
  }

  /** Begins to keep the thing up to date; it is obtained at once if it is due. */
  start(): void {
    this.#isStarted = true
    this.#check()
  }

  /** Makes no further attempts until {@link start}. One under way goes on. */
  stop(): void {
    this.#isStarted = false
    this.#timer?.cancel()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  /** The thing was obtained in another way, and is due after a delay in milliseconds. */
  dueIn(ms: number): void {
    this.#schedule.dueIn(ms, now())
    this.#check()
  }

  /** Makes the thing due after a delay in milliseconds, unless an attempt is due earlier. */
  dueWithin(ms: number): void {
    this.#schedule.dueWithin(ms, now())
    this.#check()
  }

  /** Ends the delay after a failure, because its reason may be gone. */
  retryNow(): void {
    this.#schedule.retryNow()
    this.#check()
  }

  /** Obtains the thing now, unless an attempt is under way. */
  renewNow(): void {
    this.#schedule.dueIn(0, now())
    this.retryNow()
  }

  /** Obtains the thing now. What an attempt under way yields is out of date: it is dropped, and another attempt follows. */
  renewAnew(): void {
    this.#isOutdated = this.#attempt !== undefined
    this.renewNow()
  }

  #check(): void {
    this.#timer?.cancel()
    if (this.#isClosed || !this.#isStarted || this.#attempt) return
    const wait = this.waitMs
    // Timers count whole milliseconds.
    if (wait >= 1) this.#timer = after(Math.min(wait, checkMs), () => this.#check()).unref()
    else this.#attempt = this.#renew()
  }

  async #renew(): Promise<void> {
    this.#schedule.begun()
    this.#isOutdated = false
    await this.#try()
    this.#attempt = undefined
    this.#check()
  }

  async #try(): Promise<void> {
    const { obtain, use, failed, terms } = this.#parts
    try {
      const thing = await obtain(this.failures)
      if (this.#isClosed) return
      this.#schedule.obtained(now())
      this.#schedule.succeeded(this.#isOutdated ? 0 : use(thing), now())
    } catch (error) {
      if (this.#isClosed) return
      const reason = error instanceof Error ? error : new Error(String(error))
      const wait = this.#schedule.failed(now(), chance(), terms?.(reason))
      failed(reason, this.failures, wait)
    }
  }
}
