/**
 * Lists of names that are like one that was read before: thousands of names stand in both, in stretches of the same bytes. Such a stretch is compared
 * and not read; only the names between two of them are.
 */
import { checkName, contentOfName, endOfName } from './request.ts'

/** In what a list differs from another. */
export interface ListDifference {
  /** Names that only this list has. */
  readonly plus: ReadonlySet<string>
  /** Names that only the other has. */
  readonly minus: ReadonlySet<string>
}

/** A list that is shorter than this part of another is not like it: neither is gone through. */
const leastLength = 3 / 4

/** Names that a stretch is first tried with, and at most at a time. */
const stretch = { first: 16, most: 4096 }

/** A list of names that others are compared with, each name in it once. */
export class NameList {
  readonly #raw: Buffer
  readonly #names: readonly string[]
  /** Where each name field starts; the last number is the length of the list. */
  readonly #starts: Uint32Array
  /** Place of each name in the list. Made when the first list is compared. */
  #places: ReadonlyMap<string, number> | undefined

  private constructor(raw: Buffer, names: Iterable<string>, starts: Uint32Array) {
    this.#raw = raw
    this.#names = [...names]
    this.#starts = starts
  }

  /** A list as it came (`namesIn`), with the names that were read of it in their order; undefined where it has a name twice, or is not plainly written. */
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
   * In what another list differs from this one; undefined where more than `most` names do, stand elsewhere than in this list, or
   * where the other is not plainly written, or far shorter. Throws WireError as `namesIn` does.
   */
  differenceIn(raw: Buffer, most: number): ListDifference | undefined {
    if (raw.length < this.#raw.length * leastLength) return undefined
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
      const start = contentOfName(raw, at)
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

  /** How many names from a place on stand in another list just so. */
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

  /** Names of this list that are not there; undefined where they are more than `most`. */
  #missing(there: Uint8Array, most: number): ReadonlySet<string> | undefined {
    const missing = new Set<string>()
    for (let place = there.indexOf(0); place >= 0; place = there.indexOf(0, place + 1))
      if (missing.add(this.#names[place] as string).size > most) return undefined
    return missing
  }
}
