/**
 * Lists for debug pages that the push queue gives out piece by piece, so that a page about a whole mesh keeps it from its work for a
 * millisecond or two at a time. What changes between two pieces may be in the list or not.
 */
import type { ListPiece } from '../../../protocols/messages/pages.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** A row, and how much it costs to copy: about the number of small objects that it consists of. */
export type WeighedRow<Row> = readonly [row: Row, weight: number]

/** What ends a piece: the time that making it took, in milliseconds, or the weight of its rows. */
const ofPiece = { ms: 1, weight: 500 }
/** How many lists may be asked for at a time. The one that nobody has asked for longest is given up for another one. */
const mostOpen = 16

/** The lists that are being asked for. */
export class Listings {
  /** The rest of each list; the one that was asked for last at the end. */
  readonly #rests = new Map<number, Iterator<WeighedRow<unknown>>>()
  #count = 0

  /** Begins a list. Returns its first piece. */
  first<Row>(rows: Iterable<WeighedRow<Row>>): ListPiece<Row> {
    return this.#piece(rows[Symbol.iterator]())
  }

  /** Returns the next piece of a list. Throws an Error when the list was given up. */
  more(number: number): ListPiece<unknown> {
    const rest = this.#rests.get(number)
    if (!rest) throw new Error('the list was given up, since too many others were asked for')
    this.#rests.delete(number)
    return this.#piece(rest)
  }

  #piece<Row>(rest: Iterator<WeighedRow<Row>>): ListPiece<Row> {
    const rows: Row[] = []
    const began = monotonicMs()
    for (let weight = 0; weight < ofPiece.weight && monotonicMs() - began < ofPiece.ms; ) {
      const { value, done } = rest.next()
      if (done) return { rows, next: undefined }
      rows.push(value[0])
      weight += value[1]
    }
    const next = ++this.#count
    this.#rests.set(next, rest)
    const [oldest] = this.#rests.keys()
    if (this.#rests.size > mostOpen && oldest !== undefined) this.#rests.delete(oldest)
    return { rows, next }
  }
}
