import { CollectedBytes } from '../model/collected-bytes.ts'

/** Cuts the bytes of a response into its lines, each of which is an event of a watch. */
export class Lines {
  readonly #most: number
  readonly #begun = new CollectedBytes()

  /** `most`: the length of the longest line in bytes. */
  constructor(most: number) {
    this.#most = most
  }

  /** Returns the lines that end in these bytes, without those that are empty. Throws an Error when a line is too long. */
  take(bytes: Uint8Array): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      const line = this.#line(bytes.subarray(start, end))
      if (line.trim() !== '') lines.push(line)
      start = end + 1
    }
    if (start < bytes.length) this.#keep(bytes.subarray(start))
    return lines
  }

  /** The text of the line that ends with these bytes. */
  #line(last: Uint8Array): string {
    if (this.#begun.length === 0) {
      this.#check(last.length)
      return Buffer.from(last.buffer, last.byteOffset, last.length).toString('utf8')
    }
    this.#keep(last)
    return this.#begun.take().toString('utf8')
  }

  #keep(part: Uint8Array): void {
    this.#check(this.#begun.length + part.length)
    this.#begun.add(part)
  }

  #check(length: number): void {
    if (length > this.#most) throw new Error(`an event has more than ${this.#most} bytes`)
  }
}
