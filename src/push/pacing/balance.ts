/** Keeps transport connections spread evenly over writers. However many streams are on a connection, it is one: it moves as a whole or not at all. */

/** How far above the mean a writer may be: a share of it, and a number that counts where there are few. */
const tolerance = { share: 0.15, least: 8 }
/** Share of the mean that is let go at a time, so that those who come back find a server that has time for them. */
const step = 0.1

/**
 * How many connections each writer should let go now, so that they come back elsewhere. The kernel spreads connections by
 * chance; what one writer has too many of goes a few at a time, and writers within the tolerance keep what they have.
 */
export function surplus(connections: ReadonlyMap<string, number>): Map<string, number> {
  const mean = [...connections.values()].reduce((sum, count) => sum + count, 0) / connections.size
  const allowed = mean + Math.max(tolerance.least, mean * tolerance.share)
  return new Map(
    [...connections]
      .filter(([, count]) => count > allowed)
      .map(([writer, count]) => [writer, Math.min(Math.ceil(count - mean), Math.ceil(mean * step) + 1)]),
  )
}

/** What came of letting connections go. */
interface Tried {
  /** Connections of the writer when some were let go last. */
  readonly count: number
  /** Looks that were let pass after that, and those of them that are left. */
  readonly pause: number
  left: number
}

/** Decides at each look who lets connections go. A writer that has as many as before, since they come back to it, is asked half as often each time. */
export class Balance {
  readonly #tried = new Map<string, Tried>()

  /** How many connections each writer should let go now. */
  moves(connections: ReadonlyMap<string, number>): Map<string, number> {
    const wanted = surplus(connections)
    for (const writer of this.#tried.keys()) if (!wanted.has(writer)) this.#tried.delete(writer)
    return new Map([...wanted].filter(([writer]) => this.#isDue(writer, connections.get(writer) ?? 0)))
  }

  #isDue(writer: string, count: number): boolean {
    const tried = this.#tried.get(writer)
    const helped = !tried || count < tried.count
    if (!helped && tried.left > 0) {
      tried.left--
      return false
    }
    const pause = helped ? 0 : tried.pause * 2 + 1
    this.#tried.set(writer, { count, pause, left: pause })
    return true
  }
}
