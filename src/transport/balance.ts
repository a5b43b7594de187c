/**
 * Keeps transport connections spread evenly over writers. A connection counts once however many streams are on it, and moves as a whole.
 */

/** How far above the mean a writer's number of connections may be: a share of the mean, but at least `least` connections. */
const tolerance = { share: 0.15, least: 8 }
/** The share of the mean that a writer closes at a time, so that the clients that reconnect find a server with capacity for them. */
const step = 0.1

/**
 * Returns how many connections each writer should close now so that the clients reconnect to other writers. The kernel distributes new
 * connections at random. A surplus is closed in steps; writers within the tolerance are left out of the result.
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

/** The state of a writer that was asked to close connections. */
interface Tried {
  /** The writer's number of connections when it was last asked to close some. */
  readonly count: number
  /** The number of checks to skip after that, and how many of them are left. */
  readonly pause: number
  left: number
}

/**
 * Decides at each check which writers close connections. When a writer has no fewer connections than before, because clients reconnect to
 * the same writer, the number of checks until it is asked again doubles.
 */
export class Balance {
  readonly #tried = new Map<string, Tried>()

  /** Returns how many connections each writer should close now. */
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
