/** Versions of the configuration that were in force before, and the generations that objects had in them (`/debug/config_distribution`). */

/** One version that was replaced. */
interface Version {
  /** Digest of all objects and their generations. */
  readonly ledger: string
  /** When it was replaced, in monotonic milliseconds. */
  readonly replacedAt: number
  /** Generations of the objects that changed with its replacement; undefined where there was no such object. */
  readonly generations: ReadonlyMap<string, number | undefined>
}

/** Changed objects that are remembered over all versions. */
const mostChanges = 100_000

/** The past, as long as it is kept. */
export class History {
  readonly #keepMs: number
  readonly #versions: Version[] = []
  #changes = 0

  /** Versions are kept for so many milliseconds after they were replaced. */
  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }

  /** A version was replaced; these objects had these generations in it. */
  replaced(ledger: string, generations: ReadonlyMap<string, number | undefined>, now: number): void {
    this.#versions.push({ ledger, replacedAt: now, generations })
    this.#changes += generations.size
    while (this.#versions[0] && (now - this.#versions[0].replacedAt > this.#keepMs || this.#changes > mostChanges))
      this.#changes -= this.#versions.shift()?.generations.size ?? 0
  }

  /** The generation of an object in a version that was replaced, given its present one. Undefined when there was none, or the version is not known any more. */
  generation(key: string, ledger: string, present: number | undefined): number | undefined {
    let generation = present
    for (const version of this.#versions.toReversed()) {
      if (version.generations.has(key)) generation = version.generations.get(key)
      if (version.ledger === ledger) return generation
    }
    return undefined
  }
}
