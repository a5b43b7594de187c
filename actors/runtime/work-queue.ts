/** Sequential execution of asynchronous jobs. */

/** Runs jobs one after the other. A failed job is reported, and the next one runs all the same. */
export class WorkQueue {
  readonly #failed: (what: string, reason: string) => void
  #last: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(failed: (what: string, reason: string) => void) {
    this.#failed = failed
  }

  /** Adds a job; `what` names it in error reports. Resolves when the job has succeeded or failed. */
  add(what: string, job: () => Promise<void>): Promise<void> {
    this.#last = this.#last
      .then(() => (this.#isClosed ? undefined : job()))
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#failed(what, error instanceof Error ? error.message : String(error))
      })
    return this.#last
  }

  /** Drops the jobs that have not begun, and those that are added later. A failure of the job in progress is not reported. */
  close(): void {
    this.#isClosed = true
  }

  /** Resolves when all jobs added so far have finished. */
  done(): Promise<void> {
    return this.#last
  }
}
