/** Work that is done one piece after the other. */

/** A queue of jobs. One that fails is reported; the next is done all the same. */
export class WorkQueue {
  readonly #failed: (what: string, reason: string) => void
  #last: Promise<void> = Promise.resolve()

  constructor(failed: (what: string, reason: string) => void) {
    this.#failed = failed
  }

  /** Adds a job; `what` names it in reports. Resolves when it is done or has failed. */
  add(what: string, job: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(job).catch((error: unknown) => this.#failed(what, error instanceof Error ? error.message : String(error)))
    return this.#last
  }

  /** Resolves when all jobs are done that were added so far. */
  done(): Promise<void> {
    return this.#last
  }
}
