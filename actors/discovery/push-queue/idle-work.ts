/** What the push queue does while nothing happens: prepares for the first proxy, and lets go of what has had its time. */
import type { Planner } from '../../../src/push/planner.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** What is made ahead of the first proxy, if none comes for a moment: for so many milliseconds at a time, up to so many bytes. */
const preparation = { afterMs: 200, sliceMs: 5, bytes: 32 * 1024 * 1024 }

/** Makes, after the start, what an ordinary sidecar will want, a slice at a time until the first proxy comes. */
export class Preparation {
  readonly #planner: Planner
  #timer: Timer | undefined

  constructor(planner: Planner) {
    this.#planner = planner
  }

  start(): void {
    this.#timer = after(preparation.afterMs, () => this.#goOn(this.#planner.prepare(), 0))
  }

  close(): void {
    this.#timer?.cancel()
  }

  #goOn(steps: Iterator<number>, done: number): void {
    if (this.#planner.classCount > 0) return
    const until = monotonicMs() + preparation.sliceMs
    let bytes = done
    while (monotonicMs() < until) {
      const step = steps.next()
      if (step.done || bytes > preparation.bytes) return
      bytes += step.value
    }
    const { snapshot } = this.#planner
    this.#timer = after(0, () => {
      if (this.#planner.snapshot === snapshot) this.#goOn(steps, bytes)
    })
  }
}

/** Has resources removed when their own time is over, however often anything else changes. */
export class Departures {
  readonly #next: () => number | undefined
  readonly #sweep: () => void
  #timer: Timer | undefined
  /** When the timer is set to, in monotonic milliseconds. */
  #at: number | undefined

  /** `next` says when the next resource is to go, in monotonic milliseconds; `sweep` removes those whose time is over. */
  constructor(next: () => number | undefined, sweep: () => void) {
    this.#next = next
    this.#sweep = sweep
  }

  /** Looks when the next resource is to go. */
  schedule(): void {
    const due = this.#next()
    if (due === undefined || (this.#at !== undefined && this.#at <= due)) return
    this.#timer?.cancel()
    this.#at = due
    this.#timer = after(due - monotonicMs(), () => {
      this.#at = undefined
      this.#sweep()
      this.schedule()
    })
  }

  close(): void {
    this.#timer?.cancel()
  }
}
