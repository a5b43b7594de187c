/** Timeouts for file system operations: a network file system whose server is gone answers neither with data nor with an error. */

import { count } from '../../src/model/counts.ts'
import { monotonicMs } from './clock.ts'
import { unowned } from './owner.ts'
import { checkEvery, type Timer } from './timers.ts'

/** Default timeout of one operation, in milliseconds. */
const usualMs = 10_000
/** Maximum number of timed-out operations that are still pending. Each occupies one thread of Node's thread pool. */
const maxLeft = 2

/**
 * Runs file system operations with a timeout. A timed-out operation is abandoned but stays pending; at the maximum number of such
 * operations, new ones are rejected at once, so that threads of the pool remain for other files.
 */
export class FileTimeouts {
  readonly #ms: number
  /** Pending operations in the order of their start, with their deadline and the callback for the timeout. */
  readonly #waiting = new Map<object, { readonly until: number; late(): void }>()
  #left = 0
  #timer: Timer | undefined

  constructor(ms = usualMs) {
    this.#ms = ms
  }

  /** Runs an operation. Resolves or rejects with its result; rejects after the timeout, or when too many operations have timed out. */
  run<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#left >= maxLeft)
      return Promise.reject(
        new Error(
          `not attempted: ${count(this.#left, 'earlier file operation that timed out has', 'earlier file operations that timed out have')} not returned yet`,
        ),
      )
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
      // One shared timer: most operations return at once, and a timer for each would be too expensive.
      this.#timer ??= unowned(() => checkEvery(this.#ms / 4, () => this.#check()).unref())
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

  #check(): void {
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

/** The timeouts of the files of this thread that have no others. */
export const fileTimeouts = new FileTimeouts()
