/** Cuts the bytes of a page of a list into its items as they come, so that the objects of a page are never in memory together. */

import { mapping } from '../config/shape.ts'
import { CollectedBytes } from '../model/collected-bytes.ts'
import { checkKind, listKind, type Page, readPage } from './responses.ts'

/** The bytes that structure JSON. */
const bytesOf = { quote: 34, backslash: 92, openList: 91, closeList: 93, open: 123, close: 125 }
/** The longest part of a page outside of its items, in bytes. */
const mostAround = 65_536
/** What precedes the items. */
const beforeItems = /[{,]\s*"items"\s*:\s*\[$/

/** Reads one page. */
export class ListItems {
  readonly #most: number
  readonly #kind: string | undefined
  #depth = 0
  #isString = false
  #isEscaped = false
  /** Whether the bytes are within the list `items`. */
  #isItems = false
  /** The item that has begun. */
  #item: CollectedBytes | undefined
  readonly #around = new CollectedBytes()

  /** `most`: the length of the longest item in bytes. `kind`: that of the items; undefined: any. */
  constructor(most: number, kind?: string) {
    this.#most = most
    this.#kind = kind
  }

  /** Returns the texts of the items that end in these bytes. Throws an Error when an item, or what is around them, is too long. */
  take(bytes: Uint8Array): string[] {
    const items: string[] = []
    /** The bytes before it have been kept. */
    let start = 0
    for (let at = this.#isString ? this.#endOfString(bytes, 0) : 0; at < bytes.length; at++) {
      const byte = bytes[at] as number
      // Most bytes are in strings, and most others structure nothing.
      if (byte === bytesOf.quote) at = this.#endOfString(bytes, at + 1) - 1
      else if (byte === bytesOf.open || byte === bytesOf.openList) {
        this.#depth++
        if (this.#isItems && this.#depth === 3 && byte === bytesOf.open) {
          this.#item = new CollectedBytes()
          start = at
        } else if (this.#depth === 2 && byte === bytesOf.openList) {
          this.#keep(bytes.subarray(start, at + 1))
          start = at + 1
          this.#isItems = beforeItems.test(this.#around.bytes.subarray(-100).toString('latin1'))
          if (this.#isItems) this.#checkKind()
        }
      } else if (byte === bytesOf.close || byte === bytesOf.closeList) {
        this.#depth--
        if (!this.#isItems || this.#depth > 2) continue
        if (this.#depth === 2 && this.#item) {
          this.#keep(bytes.subarray(start, at + 1))
          items.push(this.#item.bytes.toString('utf8'))
          this.#item = undefined
        } else if (this.#depth === 1) this.#isItems = false
        start = this.#isItems ? at + 1 : at
      }
    }
    this.#keep(bytes.subarray(start))
    return items
  }

  /** Returns the page without its items. Throws an Error when the bytes are no page of a list. */
  end(): Page {
    return readPage(this.#around.bytes.toString('utf8'))
  }

  /** The kind stands before the items, where a server says it: none of another kind is told. */
  #checkKind(): void {
    let head: unknown
    try {
      head = JSON.parse(`${this.#around.bytes.toString('utf8')}]}`)
    } catch {
      // It is no page of a list, which is found at its end.
      return
    }
    checkKind(mapping(head).kind, listKind(this.#kind))
  }

  /** Returns the place behind the string that `at` is in; the length of the bytes when they end before it. */
  #endOfString(bytes: Uint8Array, at: number): number {
    let place = this.#isEscaped ? at + 1 : at
    this.#isEscaped = false
    for (; place < bytes.length; place++) {
      const byte = bytes[place]
      if (byte === bytesOf.backslash) place++
      else if (byte === bytesOf.quote) {
        this.#isString = false
        return place + 1
      }
    }
    this.#isString = true
    this.#isEscaped = place > bytes.length
    return bytes.length
  }

  /** Keeps a part of the item, or of what is around the items. */
  #keep(part: Uint8Array): void {
    if (this.#item) {
      if (this.#item.length + part.length > this.#most) throw new Error(`an object of a list has more than ${this.#most} bytes`)
      this.#item.add(part)
    } else if (!this.#isItems) {
      if (this.#around.length + part.length > mostAround) throw new Error(`a list has more than ${mostAround} bytes besides its objects`)
      this.#around.add(part)
    }
  }
}
