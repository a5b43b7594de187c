/** The timer of all time limits that measure standstill. */
import { monotonicMs } from '../runtime/clock.ts'
import { deadlineAfter } from '../runtime/timers.ts'

/** Milliseconds between two ticks, and how many of them one tick charges at most: a thread that was blocked does not charge its peers. */
const tickMs = 250
const mostMs = 500

/** Ticks while something is under way, and costs nothing otherwise. */
export class PaceWheel {
  readonly #members: ((ms: number) => boolean)[] = []
  #runs = false
  #last = 0

  /** Adds something that is told the milliseconds to charge, and answers whether it has anything under way. */
  add(charge: (ms: number) => boolean): void {
    this.#members.push(charge)
  }

  /** Something is under way from now on. */
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
    const ms = Math.min(mostMs, now - this.#last)
    this.#last = now
    this.#runs = this.#members.map((charge) => charge(ms)).includes(true)
    if (this.#runs) this.#arm()
  }
}
