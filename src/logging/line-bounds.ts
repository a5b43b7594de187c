/** Rate limit for repeated log lines: a client in a loop, or an object that breaks thousands of resources, must not flood the log. */

/** The maximum numbers of lines in a window, per kind and overall, and the length of a window in milliseconds. */
const bounds = { alike: 5, all: 200, windowMs: 10_000 }

/** Counts lines by kind. */
export class LineBounds {
  readonly #alike = new Map<string, number>()
  #all = 0
  #windowEnd = 0

  /** Whether a line of a kind may be written at `now` (monotonic milliseconds), and whether it is the last one in this window. */
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

  /**
   * Returns a line of a kind to write at `now` (monotonic milliseconds), or undefined if it is suppressed. The last line of a window says
   * that further ones are suppressed, followed by `hint`.
   */
  bounded(kind: string, line: string, now: number, hint = ''): string | undefined {
    const allowed = this.take(kind, now)
    if (allowed === 'no') return undefined
    return allowed === 'last' ? `${line}; further such lines are suppressed for ten seconds${hint}` : line
  }
}
