/** A limit on how long the file system may take: a server of files that is gone answers neither with data nor with an error. */
import { monotonicMs } from './clock.ts'
import { checkEvery, type Timer } from './timers.ts'

/** Longest time that one operation is waited for, in milliseconds. */
const usualMs = 10_000
/** Operations that may be left behind without an answer. Each keeps one of the threads on which Node asks the file system. */
const mostLeft = 2

/**
 * Asks the file system and does not wait for ever. An operation that does not come back in time is left behind; while as many are left as may
 * be, nothing more is asked, so that threads stay for all other files of the process.
 */
export class FilePatience {
  readonly #ms: number
  /** Operations that are waited for, in the order in which they were asked: when each must have come back, and what says that it has not. */
  readonly #waiting = new Map<object, { readonly until: number; late(): void }>()
  #left = 0
  #timer: Timer | undefined

  constructor(ms = usualMs) {
    this.#ms = ms
  }

  /** What the operation gives. Rejects with its error, or with one that says that there was no answer. */
  wait<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#left >= mostLeft) return Promise.reject(new Error(`not asked for: ${this.#left} files have not answered yet`))
    return new Promise((resolve, reject) => {
      const operation = {}
      const over = () => {
        if (!this.#waiting.delete(operation)) this.#left--
      }
      const late = () => {
        this.#left++
        reject(new Error(`no answer within ${this.#ms} ms`))
      }
      this.#waiting.set(operation, { until: monotonicMs() + this.#ms, late })
      // One timer for all: most operations come back at once, and each would cost one.
      this.#timer ??= checkEvery(this.#ms / 4, () => this.#look()).unref()
      ask().then(
        (answer) => {
          over()
          resolve(answer)
        },
        (error) => {
          over()
          reject(error)
        },
      )
    })
  }

  #look(): void {
    const now = monotonicMs()
    for (const [operation, { until, late }] of this.#waiting) {
      if (until > now) break
      this.#waiting.delete(operation)
      late()
    }
    if (this.#waiting.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
