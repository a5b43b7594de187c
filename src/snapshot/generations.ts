/** Generations of objects, at present and in past versions of the configuration (`/debug/config_distribution`). */
import { hash } from 'node:crypto'
import { History } from './history.ts'

/** The maximum number of removed objects whose last generation is kept. */
const maxGone = 10_000

/** An object as it is counted in the ledger: its generation, and a fingerprint of its content. */
interface Counted {
  readonly generation: number
  readonly fingerprint: string
}

/** Assigns generations. A version of the configuration is identified by its ledger, a digest of all objects and their generations. */
export class Generations {
  /** The last generation of each object, including some removed ones. */
  readonly #last = new Map<string, number>()
  readonly #history: History
  /** Objects whose generation changed since the last version, with their generation in that version. */
  #changed = new Map<string, number | undefined>()
  /** The ledger of the last version. */
  #version: string
  /** The sum of the digests of all objects, in two halves modulo 2^32. */
  readonly #sums = new Uint32Array(2)

  /** `keepMs`: how long versions are kept after they were replaced, in milliseconds. */
  constructor(keepMs: number) {
    this.#history = new History(keepMs)
    this.#version = this.ledger
  }

  /** The ledger of the present state, twelve characters. */
  get ledger(): string {
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
    for (const oldest of this.#last.keys()) {
      if (this.#last.size <= held.size + maxGone || held.has(oldest)) break
      this.#last.delete(oldest)
    }
    return next
  }

  /** Records that an object was replaced. `before` or `now` is undefined when the object did not exist. */
  replaced(key: string, before: Counted | undefined, now: Counted | undefined): void {
    if (before?.generation !== now?.generation && !this.#changed.has(key)) this.#changed.set(key, before?.generation)
    if (before) this.#count(key, before, -1)
    if (now) this.#count(key, now, 1)
  }

  /** Completes a version at `now`, in monotonic milliseconds. */
  endVersion(now: number): void {
    if (this.#changed.size === 0) return
    this.#history.replaced(this.#version, this.#changed, now)
    this.#changed = new Map()
    this.#version = this.ledger
  }

  /**
   * The generation of an object in the version with this ledger. `present` is its generation now. Undefined when the object did not exist,
   * or the version is no longer kept.
   */
  in(ledger: string, key: string, present: number | undefined): number | undefined {
    const last = this.#changed.has(key) ? this.#changed.get(key) : present
    return ledger === this.#version ? last : this.#history.generation(key, ledger, last)
  }

  /** The digest includes the content because generations restart with the process. */
  #count(key: string, { generation, fingerprint }: Counted, sign: 1 | -1): void {
    const digest = hash('sha1', `${key}@${generation}@${fingerprint}`, 'buffer')
    for (const half of [0, 1]) this.#sums[half] = (this.#sums[half] as number) + sign * digest.readUInt32BE(4 * half)
  }
}
