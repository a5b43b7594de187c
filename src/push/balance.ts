/** Keeps connections spread evenly over writers. */

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
