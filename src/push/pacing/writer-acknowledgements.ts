/**
 * Tracks which writers have to acknowledge a push of changes before the next one. Messages that a writer gets because a proxy connects are
 * not counted.
 */
export class WriterAcknowledgements {
  readonly #waitedFor = new Set<string>()
  /** Writers that did not acknowledge a push in time. Later pushes do not wait for them until they have acknowledged the last one. */
  readonly #behind = new Set<string>()
  #push = 0

  /** Whether some writers have not acknowledged the last push yet. */
  get waiting(): boolean {
    return this.#waitedFor.size > 0
  }

  /** Records a push of changes to `writers`. The push waits for the writers that keep up, or for all of them when none does. */
  begin(push: number, writers: Iterable<string>): void {
    this.#push = push
    this.#waitedFor.clear()
    const all = [...writers]
    const prompt = all.filter((writer) => !this.#behind.has(writer))
    for (const writer of prompt.length > 0 ? prompt : all) this.#waitedFor.add(writer)
  }

  /** Records that a writer acknowledged a push. Returns whether that completes the last push. */
  acknowledged(writer: string, push: number): boolean {
    if (push < this.#push) return false
    this.#behind.delete(writer)
    return this.#waitedFor.delete(writer) && !this.waiting
  }

  /** Removes a writer that has ended. Returns whether that completes the last push. */
  gone(writer: string): boolean {
    this.#behind.delete(writer)
    return this.#waitedFor.delete(writer) && !this.waiting
  }

  /** Called at the timeout: the last push is complete, and the writers that have not acknowledged it are marked as behind. */
  timedOut(): void {
    for (const writer of this.#waitedFor) this.#behind.add(writer)
    this.#waitedFor.clear()
  }
}
