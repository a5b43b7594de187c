/** That the agent is to end: asked by a signal, or on the status port. */
export class Ending {
  /** Resolves with the reason when the end is asked for. */
  readonly asked: Promise<string>
  /** Resolves when nothing is to be waited for any more. */
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

  /** Whether the end was asked for. */
  get isAsked(): boolean {
    return this.#isAsked
  }

  /** Asks for the end. Has no effect when it was asked for before. */
  ask(reason: string): void {
    this.#isAsked = true
    this.#ask(reason)
  }

  /** Ends the wait for anything. */
  hurry(): void {
    this.#hurry()
  }
}
