/** Finds fields of a protobuf message that arrives in chunks, without buffering the message. Fields that are not wanted are skipped. */
import { WireError } from '../xds/slab/wire.ts'

/** The wanted fields of a message, by number: read as text, or entered as an embedded message with wanted fields of its own. */
export interface Wanted {
  readonly [field: number]: 'text' | Wanted
}

/** The maximum length of a text, in bytes. Longer ones are skipped. */
const longestText = 1024
const longestVarint = 10

/** The part of a field that the next byte belongs to. */
type Part = 'tag' | 'varint' | 'length' | 'passed' | 'text'

/** An embedded message: its end, and its wanted fields. */
interface Level {
  readonly end: number
  readonly wanted: Wanted
}

/** Scans messages one after another. */
export class FieldScan {
  readonly #wanted: Wanted
  /** Called with each wanted text and its path of field numbers, for example `2.1`. The scan stops when it returns false. */
  readonly #found: (path: string, text: string) => boolean
  #levels: Level[] = []
  #part: Part = 'tag'
  /** The number of consumed bytes of the message. */
  #at = 0
  /** The end of the field that is being skipped or read as text. */
  #fieldEnd = 0
  #path: number[] = []
  #wireType = 0
  #value = 0
  #factor = 1
  #varintBytes = 0
  readonly #text = Buffer.alloc(longestText)
  #textBytes = 0

  constructor(wanted: Wanted, found: (path: string, text: string) => boolean) {
    this.#wanted = wanted
    this.#found = found
  }

  /** Begins a message of `length` bytes. */
  begin(length: number): void {
    this.#levels = [{ end: length, wanted: this.#wanted }]
    this.#path = []
    this.#at = 0
    this.#expect('tag')
  }

  /**
   * Consumes the bytes from `from` to `to`, all of the same message. Returns where the scan stopped: `to`, or the end of a text for which
   * `found` returned false. Throws {@link WireError} when the message is not valid protobuf.
   */
  take(bytes: Buffer, from: number, to: number): number {
    let at = from
    while (at < to) {
      if (this.#part === 'passed' || this.#part === 'text') {
        const count = Math.min(to - at, this.#fieldEnd - this.#at)
        if (this.#part === 'text') this.#textBytes += bytes.copy(this.#text, this.#textBytes, at, at + count)
        at += count
        this.#at += count
        if (this.#at === this.#fieldEnd && !this.#fieldOver()) return at
      } else {
        this.#at++
        if (!this.#number(bytes[at++] as number)) return at
      }
    }
    return at
  }

  #expect(part: Part): void {
    this.#part = part
    this.#value = 0
    this.#factor = 1
    this.#varintBytes = 0
  }

  /** Consumes a byte of a tag, a length or a varint. Returns whether the scan continues. */
  #number(byte: number): boolean {
    this.#value += (byte & 127) * this.#factor
    this.#factor *= 128
    if (++this.#varintBytes > longestVarint) throw new WireError('varint is too long')
    if (byte > 127) {
      if (this.#at === this.#level.end) throw new WireError('message is cut short')
      return true
    }
    const value = this.#value
    if (this.#part === 'tag') return this.#tag(value)
    if (this.#part === 'length') return this.#lengthOf(value)
    return this.#fieldOver()
  }

  #tag(tag: number): boolean {
    const field = Math.floor(tag / 8)
    if (field === 0) throw new WireError('field number 0')
    this.#wireType = tag % 8
    this.#path.push(field)
    if (this.#wireType === 0) this.#expect('varint')
    else if (this.#wireType === 2) this.#expect('length')
    else if (this.#wireType === 5 || this.#wireType === 1) return this.#content('passed', this.#wireType === 5 ? 4 : 8)
    else throw new WireError(`wire type ${this.#wireType} is not supported`)
    if (this.#at === this.#level.end) throw new WireError('message is cut short')
    return true
  }

  #lengthOf(length: number): boolean {
    const wanted = this.#level.wanted[this.#path.at(-1) as number]
    if (wanted === undefined || wanted === 'text') return this.#content(wanted && length <= longestText ? 'text' : 'passed', length)
    this.#within(length)
    this.#levels.push({ end: this.#at + length, wanted })
    this.#expect('tag')
    // An empty embedded message ends where it begins.
    if (length === 0) this.#leave()
    return true
  }

  #content(part: 'passed' | 'text', length: number): boolean {
    this.#within(length)
    this.#part = part
    this.#fieldEnd = this.#at + length
    this.#textBytes = 0
    return length > 0 || this.#fieldOver()
  }

  #within(length: number): void {
    if (this.#at + length > this.#level.end) throw new WireError('field is longer than its message')
  }

  /** Called at the end of a field. Returns whether the scan continues. */
  #fieldOver(): boolean {
    const text = this.#part === 'text' ? this.#text.toString('utf8', 0, this.#textBytes) : undefined
    const path = text === undefined ? '' : this.#path.join('.')
    this.#expect('tag')
    this.#path.pop()
    this.#leave()
    return text === undefined || this.#found(path, text)
  }

  /** Leaves the embedded messages that end at this position. */
  #leave(): void {
    while (this.#levels.length > 1 && this.#at === this.#level.end) {
      this.#levels.pop()
      this.#path.pop()
    }
  }

  get #level(): Level {
    return this.#levels.at(-1) as Level
  }
}
