/** The request to shut the agent down, by a signal or on the status port. */
export class Shutdown {
  /** Resolves with the reason when the shutdown is requested. */
  readonly requested: Promise<string>
  /** Resolves when the agent must stop waiting for connections to drain. */
  readonly immediate: Promise<void>
  readonly #request: (reason: string) => void
  readonly #stopDraining: () => void
  #isRequested = false

  constructor() {
    const requested = Promise.withResolvers<string>()
    const immediate = Promise.withResolvers<void>()
    this.requested = requested.promise
    this.immediate = immediate.promise
    this.#request = requested.resolve
    this.#stopDraining = immediate.resolve
  }

  /** Whether the shutdown was requested. */
  get isRequested(): boolean {
    return this.#isRequested
  }

  /** Requests the shutdown. Only the first reason counts. */
  request(reason: string): void {
    this.#isRequested = true
    this.#request(reason)
  }

  /** Ends all waiting. */
  stopDraining(): void {
    this.#stopDraining()
  }
}
