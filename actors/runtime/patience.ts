/** A limit on how long the file system may take: a server of files that is gone answers neither with data nor with an error. */
import { deadlineAfter } from './timers.ts'

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
  #left = 0

  constructor(ms = usualMs) {
    this.#ms = ms
  }

  /** What the operation gives. Rejects with its error, or with one that says that there was no answer. */
  wait<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#left >= mostLeft) return Promise.reject(new Error(`not asked for: ${this.#left} files have not answered yet`))
    return new Promise((resolve, reject) => {
      let isLeft = false
      const timer = deadlineAfter(this.#ms, () => {
        isLeft = true
        this.#left++
        reject(new Error(`no answer within ${this.#ms} ms`))
      })
      ask()
        .then(resolve, reject)
        .finally(() => {
          timer.cancel()
          if (isLeft) this.#left--
        })
    })
  }
}
