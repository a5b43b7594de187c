/** Which writers the next push of changes waits for. Only pushes of changes count, not what is told when proxies connect. */
export class Takers {
  readonly #waitedFor = new Set<string>()
  /** Writers that did not take a push in time: no push waits for them until they have taken the last one. */
  readonly #behind = new Set<string>()
  #push = 0

  /** Whether writers have still to take the last push. */
  get waiting(): boolean {
    return this.#waitedFor.size > 0
  }

  /** A push of changes went to these writers. It is waited for those that keep up; when none does, for all. */
  begin(push: number, writers: Iterable<string>): void {
    this.#push = push
    this.#waitedFor.clear()
    const all = [...writers]
    const prompt = all.filter((writer) => !this.#behind.has(writer))
    for (const writer of prompt.length > 0 ? prompt : all) this.#waitedFor.add(writer)
  }

  /** A writer took a push. Returns whether the last push is done by that. */
  taken(writer: string, push: number): boolean {
    if (push < this.#push) return false
    this.#behind.delete(writer)
    return this.#waitedFor.delete(writer) && !this.waiting
  }

  /** A writer is gone. Returns whether the last push is done by that. */
  gone(writer: string): boolean {
    this.#behind.delete(writer)
    return this.#waitedFor.delete(writer) && !this.waiting
  }

  /** The time is up: the last push is done, whoever has not taken it. */
  late(): void {
    for (const writer of this.#waitedFor) this.#behind.add(writer)
    this.#waitedFor.clear()
  }
}
