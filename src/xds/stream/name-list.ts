/**
 * Fast comparison of a raw list of resource names with a list that was parsed before. Similar lists share long runs of identical bytes:
 * such runs are compared without parsing, and only the names between two runs are parsed.
 */
import { contentOfField } from '../slab/wire.ts'
import { endOfName } from './request.ts'
import { checkName } from './request-limits.ts'

/** The difference of a list to another list. */
export interface ListDifference {
  /** Names that only this list has. */
  readonly plus: ReadonlySet<string>
  /** Names that only the other list has. */
  readonly minus: ReadonlySet<string>
}

/** A list that is shorter than this fraction of the reference list is not compared. */
const minLength = 3 / 4

/** The number of names in the first run that is compared, and in the largest. */
const stretch = { first: 16, most: 4096 }

/** A parsed list that other lists are compared with. Each name is in it once. */
export class NameList {
  readonly #raw: Buffer
  readonly #names: readonly string[]
  /** The offset of each name field; the last number is the length of the list. */
  readonly #starts: Uint32Array
  /** The index of each name in the list. Created when the first list is compared. */
  #places: ReadonlyMap<string, number> | undefined

  private constructor(raw: Buffer, names: Iterable<string>, starts: Uint32Array) {
    this.#raw = raw
    this.#names = [...names]
    this.#starts = starts
  }

  /**
   * Creates a list from its name fields as received (see `namesIn`) and the names that were read from them, in their order. Returns
   * undefined if a name occurs twice, or if a field is not in the form that {@link endOfName} reads.
   */
  static of(raw: Buffer, names: ReadonlySet<string>): NameList | undefined {
    const starts = new Uint32Array(names.size + 1)
    let count = 0
    let at = 0
    for (let end = endOfName(raw, at); end !== undefined; end = endOfName(raw, at)) {
      if (count === names.size) return undefined
      starts[count++] = at
      at = end
    }
    starts[count] = at
    return count === names.size && at === raw.length ? new NameList(raw, names, starts) : undefined
  }

  /**
   * Returns the difference of another raw list to this one. Returns undefined if more than `most` names were added, removed or moved, if a
   * field is not in the form that {@link endOfName} reads, or if the other list is much shorter. Throws WireError as `namesIn` does.
   */
  differenceIn(raw: Buffer, most: number): ListDifference | undefined {
    if (raw.length < this.#raw.length * minLength) return undefined
    this.#places ??= new Map(this.#names.map((name, place) => [name, place]))
    const there = new Uint8Array(this.#names.length)
    const plus = new Set<string>()
    let place = 0
    let single = 0
    let count = 0
    for (let at = 0; at < raw.length; ) {
      const same = this.#sameFrom(raw, at, place)
      if (same > 0) {
        there.fill(1, place, place + same)
        at += this.#bytes(place, place + same)
        place += same
        count += same
        continue
      }
      const end = endOfName(raw, at)
      if (end === undefined || ++single > most) return undefined
      const start = contentOfField(raw, at)
      checkName(end - start, count++)
      const name = raw.toString('utf8', start, end)
      const known = this.#places.get(name)
      if (known === undefined) plus.add(name)
      else {
        there[known] = 1
        place = known + 1
      }
      at = end
    }
    if (count > 0) checkName(0, count - 1)
    const minus = this.#missing(there, most)
    return minus && { plus, minus }
  }

  /** Returns how many names from index `place` on occur in the other list with the same bytes, in the same order, from offset `at` on. */
  #sameFrom(raw: Buffer, at: number, place: number): number {
    let same = 0
    let isLast = false
    for (let step = stretch.first; step > 0; step = isLast ? step >> 1 : Math.min(step * 2, stretch.most)) {
      const from = place + same
      const to = from + step
      const offset = at + this.#bytes(place, from)
      const end = offset + this.#bytes(from, to)
      const isSame =
        to < this.#starts.length &&
        end <= raw.length &&
        this.#raw.compare(raw, offset, end, this.#starts[from] as number, this.#starts[to] as number) === 0
      if (isSame) same += step
      else isLast = true
    }
    return same
  }

  #bytes(from: number, to: number): number {
    return (this.#starts[to] ?? 0) - (this.#starts[from] ?? 0)
  }

  /** Returns the names of this list that are not marked in `there`; undefined if there are more than `most`. */
  #missing(there: Uint8Array, most: number): ReadonlySet<string> | undefined {
    const missing = new Set<string>()
    for (let place = there.indexOf(0); place >= 0; place = there.indexOf(0, place + 1))
      if (missing.add(this.#names[place] as string).size > most) return undefined
    return missing
  }
}
