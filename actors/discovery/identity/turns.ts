/** Lets so many jobs run at a time, and so many wait for their turn. */
export class Turns {
  readonly #atOnce: number
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(atOnce: number, waiting: number) {
    this.#atOnce = atOnce
    this.#most = waiting
  }

  /** Runs a job when it is its turn, in the order in which they came. At once resolves to `too many wait` when that is so. */
  async take<T>(job: () => Promise<T>): Promise<T | 'too many wait'> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= this.#most) return 'too many wait'
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await job()
    } finally {
      // The one that waited longest takes over the turn.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }
}
