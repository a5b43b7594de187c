/** How long many proxies took to answer, in a bounded number of counts. */

/** The ratio of the bounds of a count: times are known within a tenth. */
const step = Math.log(1.1)

/** Counts times in milliseconds, each by the largest number of {@link step}s that it reaches. */
export class AnswerTimes {
  readonly #counts: Map<number, number>

  /** `told`: those of {@link told}, of which several may be given. */
  constructor(...told: readonly (readonly number[])[]) {
    this.#counts = new Map()
    for (const pairs of told) for (let at = 0; at + 1 < pairs.length; at += 2) this.#add(pairs[at] as number, pairs[at + 1] as number)
  }

  add(ms: number): void {
    this.#add(ms < 1 ? 0 : 1 + Math.floor(Math.log(ms) / step), 1)
  }

  /** Pairs of a step and the number of times that reach it. */
  get told(): number[] {
    return [...this.#counts].flat()
  }

  /** The time within which a share of all was: at most a tenth more than it was; 0 when there is none. */
  within(share: number): number {
    const counts = [...this.#counts].sort(([one], [other]) => one - other)
    const all = counts.reduce((sum, [, count]) => sum + count, 0)
    let seen = 0
    for (const [reached, count] of counts) if ((seen += count) >= share * all) return Math.exp(reached * step)
    return 0
  }

  #add(reached: number, count: number): void {
    this.#counts.set(reached, (this.#counts.get(reached) ?? 0) + count)
  }
}
