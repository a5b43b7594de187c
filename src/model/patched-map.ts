/** Maps of which many versions are made that differ in a few entries each. */

/** Entries that may lie over a base. Beyond that, and beyond a sixteenth of the base, a base of their own costs less. */
const mostOver = 64

/** A map that never changes. Another that differs in a few entries costs these entries, and not the whole. */
export class PatchedMap<Key, Value> implements ReadonlyMap<Key, Value> {
  readonly #base: ReadonlyMap<Key, Value>
  /** Entries that count instead of those of the base; undefined where there is none. */
  readonly #over: ReadonlyMap<Key, Value | undefined>
  readonly size: number

  private constructor(base: ReadonlyMap<Key, Value>, over: ReadonlyMap<Key, Value | undefined>, size: number) {
    this.#base = base
    this.#over = over
    this.size = size
  }

  /** A map without entries. */
  static empty<Key, Value>(): PatchedMap<Key, Value> {
    return new PatchedMap<Key, Value>(new Map(), new Map(), 0)
  }

  /** This map with other entries; undefined takes an entry away. */
  with(changes: ReadonlyMap<Key, Value | undefined>): PatchedMap<Key, Value> {
    const over = new Map(this.#over)
    let { size } = this
    for (const [key, value] of changes) {
      size += Number(value !== undefined) - Number(this.has(key))
      over.set(key, value)
    }
    const patched = new PatchedMap(this.#base, over, size)
    return over.size > Math.max(mostOver, this.#base.size / 16) ? new PatchedMap(new Map(patched), new Map(), size) : patched
  }

  get(key: Key): Value | undefined {
    return this.#over.get(key) ?? (this.#over.has(key) ? undefined : this.#base.get(key))
  }

  has(key: Key): boolean {
    return this.get(key) !== undefined
  }

  forEach(visit: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    for (const [key, value] of this) visit(value, key, this)
  }

  /** Entries of the base in its order, then those that came since. */
  *[Symbol.iterator](): Generator<[Key, Value], undefined> {
    for (const [key, value] of this.#base) {
      const now = this.#over.has(key) ? this.#over.get(key) : value
      if (now !== undefined) yield [key, now]
    }
    for (const [key, value] of this.#over) if (value !== undefined && !this.#base.has(key)) yield [key, value]
  }

  entries(): MapIterator<[Key, Value]> {
    return this[Symbol.iterator]()
  }

  *keys(): Generator<Key, undefined> {
    for (const [key] of this) yield key
  }

  *values(): Generator<Value, undefined> {
    for (const [, value] of this) yield value
  }
}
