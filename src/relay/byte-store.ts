/** Smallest buffer, in bytes. */
const smallest = 512

/** Bytes that come in pieces, copied one behind the other: however small the pieces are, at most twice their bytes are held. */
export class ByteStore {
  #buffer = Buffer.alloc(0)
  #length = 0

  /** Bytes that are held. */
  get length(): number {
    return this.#length
  }

  /** Copies the bytes of a buffer from `from` to `to`. */
  append(bytes: Buffer, from = 0, to = bytes.length): void {
    const length = this.#length + to - from
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(smallest, length, this.#buffer.length * 2))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    bytes.copy(this.#buffer, this.#length, from, to)
    this.#length = length
  }

  /** All that is held, as it stands in the store. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Gives away all that is held. */
  take(): Buffer {
    const bytes = this.bytes()
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return bytes
  }
}
