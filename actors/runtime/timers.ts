/**
 * The only place that sets timers. Node turns delays above 2^31-1 ms into 1 ms; here a long delay is waited for in several
 * steps, and an infinite one never ends. A timer that an in-thread actor sets ends with the actor.
 */
import { currentOwner, type Owner } from './owner.ts'

/** Longest delay in milliseconds that one timer of Node takes. */
const longestStep = 2_147_483_647

/** A timer that was set. */
export interface Timer {
  /** Stops it; nothing happens when it has run already. */
  cancel(): void
  /** Lets the process end while it waits. */
  unref(): Timer
}

/** Runs something once after so many milliseconds; at once when that is negative. Throws RangeError for NaN. */
export function after(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, false)
}

/** Runs something every so many milliseconds until it is cancelled. Throws RangeError for NaN. */
export function every(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, true)
}

/** Resolves after so many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => after(ms, resolve))
}

class StepTimer implements Timer {
  readonly #ms: number
  readonly #run: () => void
  readonly #again: boolean
  #timer: NodeJS.Timeout | undefined
  #referenced = true
  readonly #owner: Owner | undefined = currentOwner()

  constructor(ms: number, run: () => void, again: boolean) {
    if (Number.isNaN(ms)) throw new RangeError('a delay must be a number of milliseconds')
    this.#ms = ms
    this.#run = run
    this.#again = again
    this.#step(ms)
    this.#owner?.keep(this)
  }

  cancel(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#owner?.release(this)
  }

  unref(): Timer {
    this.#referenced = false
    this.#timer?.unref()
    return this
  }

  #step(left: number): void {
    const step = Math.min(Math.max(0, left), longestStep)
    this.#timer = setTimeout(() => {
      if (left > longestStep) return this.#step(left - longestStep)
      this.#timer = undefined
      if (this.#again) this.#step(this.#ms)
      else this.#owner?.release(this)
      this.#run()
    }, step)
    if (!this.#referenced) this.#timer.unref()
  }
}
