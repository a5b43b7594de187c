/** Cuts the bytes of a response into its lines, each of which is an event of a watch. */
export class Lines {
  readonly #most: number
  #parts: Uint8Array[] = []
  #length = 0

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
    // A copy, since the rest of the memory would stay with it.
    if (start < bytes.length) this.#keep(Uint8Array.prototype.slice.call(bytes, start))
    return lines
  }

  /** The text of the line that ends with these bytes. */
  #line(last: Uint8Array): string {
    this.#count(last)
    const all = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last])
    this.#parts = []
    this.#length = 0
    return Buffer.from(all.buffer, all.byteOffset, all.length).toString('utf8')
  }

  #keep(part: Uint8Array): void {
    this.#count(part)
    this.#parts.push(part)
  }

  #count({ length }: Uint8Array): void {
    this.#length += length
    if (this.#length > this.#most) throw new Error(`an event has more than ${this.#most} bytes`)
  }
}
