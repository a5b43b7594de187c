/** Limits the number of concurrent jobs and the number of waiting jobs. */
export class ConcurrencyLimit {
  readonly #atOnce: number
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(atOnce: number, waiting: number) {
    this.#atOnce = atOnce
    this.#most = waiting
  }

  /** Runs a job when there is capacity, first in, first out. Resolves at once to `too many wait` when too many jobs are waiting. */
  async run<T>(job: () => Promise<T>): Promise<T | 'too many wait'> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= this.#most) return 'too many wait'
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await job()
    } finally {
      // The slot is passed to the job that has waited longest.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }
}
