/** The request to shut the agent down, by a signal or on the status port. */
export class Ending {
  /** Resolves with the reason when the shutdown is requested. */
  readonly asked: Promise<string>
  /** Resolves when the agent must stop waiting for connections to drain. */
  readonly hurried: Promise<void>
  readonly #ask: (reason: string) => void
  readonly #hurry: () => void
  #isAsked = false

  constructor() {
    const asked = Promise.withResolvers<string>()
    const hurried = Promise.withResolvers<void>()
    this.asked = asked.promise
    this.hurried = hurried.promise
    this.#ask = asked.resolve
    this.#hurry = hurried.resolve
  }

  /** Whether the shutdown was requested. */
  get isAsked(): boolean {
    return this.#isAsked
  }

  /** Requests the shutdown. Only the first reason counts. */
  ask(reason: string): void {
    this.#isAsked = true
    this.#ask(reason)
  }

  /** Ends all waiting. */
  hurry(): void {
    this.#hurry()
  }
}
