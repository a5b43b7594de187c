/** The shared timer of all timeouts that measure time without progress. */
import { monotonicMs } from '../runtime/clock.ts'
import { deadlineAfter } from '../runtime/timers.ts'

/**
 * Interval of the ticks, and maximum time charged by one tick, in milliseconds: time during which this thread was blocked is not charged
 * to peers.
 */
const tickMs = 250
const maxMs = 500

/** Calls its members at every tick, but only while one of them has work under way. */
export class StandstillTimer {
  readonly #members: ((ms: number) => boolean)[] = []
  #runs = false
  #last = 0

  /** Adds a member: a function that is called with the milliseconds to charge and returns whether it has work under way. */
  add(charge: (ms: number) => boolean): void {
    this.#members.push(charge)
  }

  /** Starts the ticks: a member has work under way. */
  wake(): void {
    if (this.#runs) return
    this.#runs = true
    this.#last = monotonicMs()
    this.#arm()
  }

  #arm(): void {
    deadlineAfter(tickMs, () => this.#tick()).unref()
  }

  #tick(): void {
    const now = monotonicMs()
    const ms = Math.min(maxMs, now - this.#last)
    this.#last = now
    this.#runs = this.#members.map((charge) => charge(ms)).includes(true)
    if (this.#runs) this.#arm()
  }
}
