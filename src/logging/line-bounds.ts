/** How often the log tells of the same: a client in a loop, or an object that spoils thousands of resources, must not fill it. */

/** How many lines are written in a window of so many milliseconds: of one kind, and of all. */
const bounds = { alike: 5, all: 200, windowMs: 10_000 }

/** Counts lines by their kind. */
export class LineBounds {
  readonly #alike = new Map<string, number>()
  #all = 0
  #windowEnd = 0

  /** Whether a line of a kind may be written now (monotonic milliseconds), and whether it is the last one for the moment. */
  take(kind: string, now: number): 'yes' | 'last' | 'no' {
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + bounds.windowMs
      this.#alike.clear()
      this.#all = 0
    }
    const alike = (this.#alike.get(kind) ?? 0) + 1
    if (alike > bounds.alike || this.#all >= bounds.all) return 'no'
    this.#alike.set(kind, alike)
    this.#all++
    return alike === bounds.alike || this.#all === bounds.all ? 'last' : 'yes'
  }
}
