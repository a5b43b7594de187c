/** Immutable maps for sequences of versions that differ in a few entries each. */

/** The number of entries that may overlay a base. Beyond this number and beyond a sixteenth of the base, copying the base costs less. */
const maxOver = 64

/** An immutable map. Deriving a map with a few other entries costs time and memory for these entries only. */
export class OverlaidMap<Key, Value> implements ReadonlyMap<Key, Value> {
  readonly #base: ReadonlyMap<Key, Value>
  /** Entries that override those of the base. Undefined: the entry is removed. */
  readonly #over: ReadonlyMap<Key, Value | undefined>
  readonly size: number

  private constructor(base: ReadonlyMap<Key, Value>, over: ReadonlyMap<Key, Value | undefined>, size: number) {
    this.#base = base
    this.#over = over
    this.size = size
  }

  /** A map without entries. */
  static empty<Key, Value>(): OverlaidMap<Key, Value> {
    return new OverlaidMap<Key, Value>(new Map(), new Map(), 0)
  }

  /** Returns this map with changed entries. Undefined removes an entry. */
  with(changes: ReadonlyMap<Key, Value | undefined>): OverlaidMap<Key, Value> {
    const over = new Map(this.#over)
    let { size } = this
    for (const [key, value] of changes) {
      size += Number(value !== undefined) - Number(this.has(key))
      over.set(key, value)
    }
    const overlaid = new OverlaidMap(this.#base, over, size)
    return over.size > Math.max(maxOver, this.#base.size / 16) ? new OverlaidMap(new Map(overlaid), new Map(), size) : overlaid
  }

  /** Returns the keys whose values differ from those of another map. If both derive from one base, that costs what was changed since. */
  *differing(other: OverlaidMap<Key, Value>): Generator<Key, undefined> {
    const isNear = this.#base === other.#base
    for (const key of isNear ? this.#over.keys() : this.keys()) if (this.get(key) !== other.get(key)) yield key
    for (const key of isNear ? other.#over.keys() : other.keys())
      if ((isNear ? !this.#over.has(key) : !this.has(key)) && this.get(key) !== other.get(key)) yield key
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

  /** Iterates over the entries of the base in its order, then over the added ones. */
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

/** Keys whose values differ between two maps. For maps of which one derives from the other that costs what was changed. */
export function* differingKeys<Key, Value>(before: ReadonlyMap<Key, Value>, now: ReadonlyMap<Key, Value>): Generator<Key, undefined> {
  if (before instanceof OverlaidMap && now instanceof OverlaidMap) return yield* now.differing(before)
  for (const [key, value] of now) if (before.get(key) !== value) yield key
  for (const key of before.keys()) if (!now.has(key)) yield key
}
