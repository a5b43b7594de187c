/**
 * The only place that sets timers. Node turns delays above 2^31-1 ms into 1 ms; here a long delay is waited for in several
 * steps, and an infinite one never ends. A timer that an in-thread actor sets ends with the actor.
 *
 * After a thread was blocked, its event loop runs the timers that are overdue before it takes the bytes and messages that came
 * meanwhile. A limit on what another side does is therefore set with {@link deadlineAfter} or {@link checkEvery}.
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
  return new StepTimer(ms, run, { again: false, taken: false })
}

/** Runs something every so many milliseconds until it is cancelled. Throws RangeError for NaN. */
export function every(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: true, taken: false })
}

/** Like {@link after}, once the thread has also taken the bytes and messages that had come by then. */
export function deadlineAfter(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: false, taken: true })
}

/** Like {@link every}, each time once the thread has also taken the bytes and messages that had come by then. */
export function checkEvery(ms: number, run: () => void): Timer {
  return new StepTimer(ms, run, { again: true, taken: true })
}

/** Resolves after so many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => after(ms, resolve))
}

/** Whether a timer repeats, and whether what came has to be taken before it runs. */
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
      // The loop reads between its timers and its immediates. Without a reference it would wait there for something to come.
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
