/** The entries that are to be looked at, in turns of their namespaces: one whose entries change all the time delays its own (docs/registration.md, R12). */
export class DueEntries {
  /** Ids by namespace, in the order of turns. No set is empty. */
  readonly #namespaces = new Map<string, Set<string>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds an entry, `<plural>.<group> <namespace>/<name>`. One that is there keeps its place. */
  add(id: string): void {
    const namespace = namespaceOf(id)
    const ids = this.#namespaces.get(namespace) ?? new Set<string>()
    if (!ids.has(id)) this.#size++
    this.#namespaces.set(namespace, ids.add(id))
  }

  delete(id: string): void {
    const namespace = namespaceOf(id)
    const ids = this.#namespaces.get(namespace)
    if (!ids?.delete(id)) return
    this.#size--
    if (ids.size === 0) this.#namespaces.delete(namespace)
  }

  /** Removes and returns the oldest entry of the namespace whose turn it is; undefined: there is none. */
  take(): string | undefined {
    for (const [namespace, ids] of this.#namespaces)
      for (const id of ids) {
        this.delete(id)
        // The next turn of this namespace comes after those of all others.
        if (this.#namespaces.delete(namespace)) this.#namespaces.set(namespace, ids)
        return id
      }
    return undefined
  }
}

const namespaceOf = (id: string): string => id.slice(id.indexOf(' ') + 1, id.lastIndexOf('/'))
