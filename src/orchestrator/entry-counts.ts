/**
 * How many entries of each WorkloadGroup there are, or are to be (docs/registration.md, R13), and how many each replica keeps (R7).
 */

/** The numbers of entries by a key that each of them has, or has not. */
export class EntryCounts {
  readonly #keyOf = new Map<string, string>()
  readonly #numbers = new Map<string, number>()

  /** The keys that entries have, with the numbers of these. */
  get numbers(): ReadonlyMap<string, number> {
    return this.#numbers
  }

  /** Sets the key of an entry; undefined: it has none, or is gone. */
  set(id: string, key: string | undefined): void {
    const before = this.#keyOf.get(id)
    if (before === key) return
    if (before !== undefined) this.#add(before, -1)
    if (key === undefined) this.#keyOf.delete(id)
    else {
      this.#keyOf.set(id, key)
      this.#add(key, 1)
    }
  }

  #add(key: string, change: number): void {
    const number = (this.#numbers.get(key) ?? 0) + change
    if (number > 0) this.#numbers.set(key, number)
    else this.#numbers.delete(key)
  }
}
