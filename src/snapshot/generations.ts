/** Generations of objects, now and in versions of the configuration that were in force before (`/debug/config_distribution`). */
import { hash } from 'node:crypto'
import { History } from './history.ts'

/** Objects that are gone of which the last generation is remembered. */
const mostGone = 10_000

/** An object as it counts for the digest of all: its generation, and what its content is told apart by. */
interface Counted {
  readonly generation: number
  readonly fingerprint: string
}

/** Counts generations. A version of the configuration is named by its ledger, a digest of all objects and their generations. */
export class Generations {
  /** Last generation of each object, of some that are gone too. */
  readonly #last = new Map<string, number>()
  readonly #history: History
  /** Objects whose generation changed since the last version, and what it was then. */
  #changed = new Map<string, number | undefined>()
  /** Ledger of the last version. */
  #version: string
  /** Sum of the digests of all objects, two halves modulo 2^32. */
  readonly #sums = new Uint32Array(2)

  /** Versions are remembered for so many milliseconds after they were replaced. */
  constructor(keepMs: number) {
    this.#history = new History(keepMs)
    this.#version = this.ledger
  }

  /** The ledger of what is known now, twelve characters. */
  get ledger(): string {
    return Buffer.from(this.#sums.buffer).toString('base64')
  }

  /**
   * The next generation of an object: the one that its source gives, but a greater one than before when its content changed. Objects whose
   * source counts none, as files do, get one with each change, also when they were gone in between.
   */
  next(key: string, given: number, changed: boolean, held: { readonly size: number; has(key: string): boolean }): number {
    const last = this.#last.get(key) ?? 0
    const next = Math.max(given, changed ? last + 1 : last)
    this.#last.delete(key)
    this.#last.set(key, next)
    for (const oldest of this.#last.keys()) {
      if (this.#last.size <= held.size + mostGone || held.has(oldest)) break
      this.#last.delete(oldest)
    }
    return next
  }

  /** An object took the place of another; undefined where there is none. */
  replaced(key: string, before: Counted | undefined, now: Counted | undefined): void {
    if (before?.generation !== now?.generation && !this.#changed.has(key)) this.#changed.set(key, before?.generation)
    if (before) this.#count(key, before, -1)
    if (now) this.#count(key, now, 1)
  }

  /** A version is complete, at a time in monotonic milliseconds. */
  endVersion(now: number): void {
    if (this.#changed.size === 0) return
    this.#history.replaced(this.#version, this.#changed, now)
    this.#changed = new Map()
    this.#version = this.ledger
  }

  /** Generation of an object in a version, by its ledger, given its present one. Undefined when there was no such object, or the version is not known any more. */
  in(ledger: string, key: string, present: number | undefined): number | undefined {
    const last = this.#changed.has(key) ? this.#changed.get(key) : present
    return ledger === this.#version ? last : this.#history.generation(key, ledger, last)
  }

  /** The digest tells content apart as well as generations: these begin anew with the process. */
  #count(key: string, { generation, fingerprint }: Counted, sign: 1 | -1): void {
    const digest = hash('sha1', `${key}@${generation}@${fingerprint}`, 'buffer')
    for (const half of [0, 1]) this.#sums[half] = (this.#sums[half] as number) + sign * digest.readUInt32BE(4 * half)
  }
}
