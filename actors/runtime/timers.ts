/**
 * The only module that sets timers. Node turns delays above 2^31-1 ms into 1 ms; here a long delay is split into several steps, and an
 * infinite one never elapses. Timers of an in-thread actor are cancelled when the actor ends.
 *
 * After a thread was blocked, its event loop runs overdue timers before it reads the bytes and messages that arrived meanwhile. Timeouts
 * for another party are therefore set with {@link deadlineAfter} or {@link checkEvery}.
 */
import { currentOwner, type Owner } from './owner.ts'

/** Maximum delay of one Node timer, in milliseconds. */
const longestStep = 2_147_483_647

/** A timer that has been set. */
export interface Timer {
  /** Cancels the timer. No effect when it has already run. */
  cancel(): void
  /** Does not keep the process alive while the timer is pending. */
  unref(): Timer
}

/** Calls `run` once after a delay in milliseconds, which counts as 0 if negative. Throws RangeError for NaN. */
export function after(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: false, taken: false })
}

/** Calls `run` at an interval in milliseconds until it is cancelled. Throws RangeError for NaN. */
export function every(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: true, taken: false })
}

/** Like {@link after}, but calls `run` only after the thread has processed the bytes and messages that arrived before the deadline. */
export function deadlineAfter(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: false, taken: true })
}

/** Like {@link every}, but calls `run` each time only after the thread has processed the bytes and messages that had arrived. */
export function checkEvery(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: true, taken: true })
}

/** Resolves after a delay in milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => after(ms, resolve))
}

/** Resolves when `what` has, or after `ms` milliseconds, whichever is first; never rejects. No timer stays behind. */
export async function within(ms: number, what: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = after(ms, resolve)
  await Promise.race([what.catch(() => undefined), promise])
  timer.cancel()
}

/** `again`: whether the timer repeats. `taken`: whether pending input is processed before it runs. */
interface Manner {
  readonly again: boolean
  readonly taken: boolean
}

class StepTimer implements Timer {
  readonly #ms: number
  readonly #run: () => void
  readonly #manner: Manner
  #timer: NodeJS.Timeout | undefined
  #taking: NodeJS.Immediate | undefined
  #referenced = true
  readonly #owner: Owner | undefined = currentOwner()

  constructor(ms: number, run: () => void, manner: Manner) {
    if (Number.isNaN(ms)) throw new RangeError('a delay must be a number of milliseconds')
    this.#ms = ms
    this.#run = run
    this.#manner = manner
    this.#step(ms)
    this.#owner?.keep(this)
  }

  cancel(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#taking)
    this.#timer = undefined
    this.#taking = undefined
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
      this.#timer = undefined
      if (left > longestStep) return this.#step(left - longestStep)
      if (!this.#manner.taken) return this.#fire()
      // The event loop polls for I/O between timers and immediates. The immediate is referenced, otherwise the poll would block until
      // something arrives.
      this.#taking = setImmediate(() => this.#fire())
    }, step)
    if (!this.#referenced) this.#timer.unref()
  }

  #fire(): void {
    this.#taking = undefined
    if (this.#manner.again) this.#step(this.#ms)
    else this.#owner?.release(this)
    this.#run()
  }
}
