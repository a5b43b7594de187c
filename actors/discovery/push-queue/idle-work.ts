/**
 * Deferred work of the push queue: encoding resources ahead of the first proxy, removing resources whose grace period has passed, and trying
 * again what failed.
 */
import { BackOff, type Pauses } from '../../../src/model/back-off.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/**
 * Limits of the preparation: it starts `afterMs` after the first push, runs in slices of `sliceMs`, and stops after `bytes` encoded
 * bytes.
 */
const preparation = { afterMs: 200, sliceMs: 5, bytes: 32 * 1024 * 1024 }

/** Encodes the resources that an ordinary sidecar will need, in slices between other events, until the first proxy connects. */
export class Preparation {
  readonly #planner: Planner
  #timer: Timer | undefined

  constructor(planner: Planner) {
    this.#planner = planner
  }

  start(): void {
    this.#timer = after(preparation.afterMs, () => this.#continue(this.#planner.prepare(), 0))
  }

  close(): void {
    this.#timer?.cancel()
  }

  #continue(steps: Iterator<number>, done: number): void {
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
      if (this.#planner.snapshot === snapshot) this.#continue(steps, bytes)
    })
  }
}

/** Removes resources when their grace period ends, on a timer of its own, so that removal does not depend on further changes. */
export class DeferredRemovals {
  readonly #next: () => number | undefined
  readonly #sweep: () => void
  #timer: Timer | undefined
  /** Due time of the timer, in monotonic milliseconds. */
  #at: number | undefined

  /** `next` returns when the next resource is due for removal, in monotonic milliseconds; `sweep` removes the resources that are due. */
  constructor(next: () => number | undefined, sweep: () => void) {
    this.#next = next
    this.#sweep = sweep
  }

  /** Sets the timer for the next removal, unless it is already set for that time or earlier. */
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

/** The delays before an advance that failed is tried again. */
const pauses: Pauses = { firstMs: 1000, longestMs: 60_000 }

/** Tries an advance that failed again, on a timer of its own, so that the last changes do not wait for the next one. */
export class Retries {
  readonly #backOff = new BackOff(pauses)
  readonly #again: () => void
  #timer: Timer | undefined

  /** `again` is called when the next attempt is due. */
  constructor(again: () => void) {
    this.#again = again
  }

  /** Records the outcome of an attempt. */
  ended(succeeded: boolean): void {
    this.#timer?.cancel()
    if (succeeded) return this.#backOff.succeeded()
    this.#timer = after(this.#backOff.failed(monotonicMs()), this.#again)
  }

  /** Something failed outside an attempt: sees to it that one is due. */
  needed(): void {
    if (this.#backOff.failures === 0) this.ended(false)
  }

  close(): void {
    this.#timer?.cancel()
  }
}
