/** Past versions of the configuration, with the generations that objects had in them (`/debug/config_distribution`). */

/** A version that was replaced. */
interface Version {
  /** The digest of all objects and their generations. */
  readonly digest: string
  /** When it was replaced, in monotonic milliseconds. */
  readonly replacedAt: number
  /** The generations of the objects that changed when the version was replaced. Undefined: the object did not exist. */
  readonly generations: ReadonlyMap<string, number | undefined>
}

/** The generation of an object in a version that is unknown, or no longer kept. */
export const notKept = 'not kept'

/** The maximum number of changed objects over all versions. */
const maxChanges = 100_000

/** The past versions that are kept. */
export class History {
  readonly #keepMs: number
  readonly #versions: Version[] = []
  #changes = 0

  /** `keepMs`: how long versions are kept after they were replaced, in milliseconds. */
  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }

  /** Records a version that was replaced at `now`, with the generations that the changed objects had in it. */
  replaced(digest: string, generations: ReadonlyMap<string, number | undefined>, now: number): void {
    this.#versions.push({ digest, replacedAt: now, generations })
    this.#changes += generations.size
    while (this.#versions[0] && (now - this.#versions[0].replacedAt > this.#keepMs || this.#changes > maxChanges))
      this.#changes -= this.#versions.shift()?.generations.size ?? 0
  }

  /**
   * The generation of an object in a past version. `present` is its generation after the last recorded version. Undefined when the object
   * did not exist.
   */
  generation(key: string, digest: string, present: number | undefined): number | typeof notKept | undefined {
    let generation = present
    for (const version of this.#versions.toReversed()) {
      if (version.generations.has(key)) generation = version.generations.get(key)
      if (version.digest === digest) return generation
    }
    return notKept
  }
}
