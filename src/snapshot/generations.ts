/** Generations of objects, at present and in past versions of the configuration (`/debug/config_distribution`). */
import { hash } from 'node:crypto'
import { History, type notKept } from './history.ts'

/** The maximum number of removed objects whose last generation is kept. */
const maxGone = 10_000

/** 64 bits of a digest, in two halves. */
export type Digest = readonly [number, number]

/** An object as it counts in the digest of a version. */
interface Counted {
  readonly object: { readonly generation: number }
  readonly digest: Digest
}

/**
 * Returns what an object adds to the digest of a version. It includes the content because generations restart with the process.
 */
export function digestOf(key: string, generation: number, content: string): Digest {
  const digest = hash('sha1', `${key}@${generation}@${content}`, 'buffer')
  return [digest.readInt32BE(0), digest.readInt32BE(4)]
}

/** Assigns generations. A version of the configuration is identified by its digest, which follows from all objects and their generations. */
export class Generations {
  /** The last generation of each object, including some removed ones. */
  readonly #last = new Map<string, number>()
  readonly #history: History
  /** Objects whose generation changed since the last version, with their generation in that version. */
  #changed = new Map<string, number | undefined>()
  /** The digest of the last version. */
  #version: string
  /** The sum of the digests of all objects, in two halves modulo 2^32. */
  readonly #sums = new Uint32Array(2)

  /** `keepMs`: how long versions are kept after they were replaced, in milliseconds. */
  constructor(keepMs: number) {
    this.#history = new History(keepMs)
    this.#version = this.digest
  }

  /** The digest of the present state, twelve characters. */
  get digest(): string {
    return Buffer.from(this.#sums.buffer).toString('base64')
  }

  /**
   * Returns the next generation of an object: the one that its source gives, but more than the last one when the content changed. Objects
   * from sources without generations, such as files, get a new one with each change, also when they were removed in between.
   */
  next(key: string, given: number, changed: boolean, held: { readonly size: number; has(key: string): boolean }): number {
    const last = this.#last.get(key) ?? 0
    const next = Math.max(given, changed ? last + 1 : last)
    this.#last.delete(key)
    this.#last.set(key, next)
    // Asked for before the keys are: to find the first one costs a pass over those that were deleted since the map was last arranged anew.
    if (this.#last.size > held.size + maxGone)
      for (const oldest of this.#last.keys()) {
        if (this.#last.size <= held.size + maxGone || held.has(oldest)) break
        this.#last.delete(oldest)
      }
    return next
  }

  /** Records that an object was replaced. `before` or `now` is undefined when the object did not exist. */
  replaced(key: string, before: Counted | undefined, now: Counted | undefined): void {
    const [old, next] = [before?.object.generation, now?.object.generation]
    if (old !== next && !this.#changed.has(key)) this.#changed.set(key, old)
    for (const half of [0, 1] as const) this.#sums[half] = (this.#sums[half] as number) - (before?.digest[half] ?? 0) + (now?.digest[half] ?? 0)
  }

  /** Completes a version at `now`, in monotonic milliseconds. */
  endVersion(now: number): void {
    if (this.#changed.size === 0) return
    this.#history.replaced(this.#version, this.#changed, now)
    this.#changed = new Map()
    this.#version = this.digest
  }

  /**
   * The generation of an object in the version with this digest. `present` is its generation now. Undefined when the object did not exist.
   */
  in(digest: string, key: string, present: number | undefined): number | typeof notKept | undefined {
    const last = this.#changed.has(key) ? this.#changed.get(key) : present
    return digest === this.#version ? last : this.#history.generation(key, digest, last)
  }
}
