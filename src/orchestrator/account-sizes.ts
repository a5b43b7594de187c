/** How many entries of each WorkloadGroup there are, or are to be (docs/registration.md, R13). */

/** The numbers of entries by their groups: `<namespace>/<name>`. */
export class AccountSizes {
  readonly #groupOf = new Map<string, string>()
  readonly #sizes = new Map<string, number>()

  /** The groups that have entries, with their numbers. */
  get sizes(): ReadonlyMap<string, number> {
    return this.#sizes
  }

  /** Sets the group of an entry; undefined: it has none, or is gone. */
  set(id: string, group: string | undefined): void {
    const before = this.#groupOf.get(id)
    if (before === group) return
    if (before !== undefined) this.#add(before, -1)
    if (group === undefined) this.#groupOf.delete(id)
    else {
      this.#groupOf.set(id, group)
      this.#add(group, 1)
    }
  }

  #add(group: string, change: number): void {
    const size = (this.#sizes.get(group) ?? 0) + change
    if (size > 0) this.#sizes.set(group, size)
    else this.#sizes.delete(group)
  }
}
