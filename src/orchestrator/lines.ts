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
      this.#keep(bytes.subarray(start, end))
      const line = Buffer.concat(this.#parts).toString('utf8')
      this.#parts = []
      this.#length = 0
      if (line.trim() !== '') lines.push(line)
      start = end + 1
    }
    // A copy, since the rest of the memory would stay with it.
    this.#keep(start < bytes.length ? Uint8Array.from(bytes.subarray(start)) : new Uint8Array())
    return lines
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return
    this.#length += part.length
    if (this.#length > this.#most) throw new Error(`an event has more than ${this.#most} bytes`)
    this.#parts.push(part)
  }
}
