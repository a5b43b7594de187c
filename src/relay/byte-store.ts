/** The minimum size of the buffer, in bytes. */
const smallest = 512

/** Appends byte chunks to one buffer. Chunks are copied, so that however small they are, memory use is at most twice their total size. */
export class ByteStore {
  #buffer = Buffer.alloc(0)
  #length = 0

  /** The number of stored bytes. */
  get length(): number {
    return this.#length
  }

  /** Appends the bytes of a buffer from `from` to `to`. */
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

  /** Returns a view of all stored bytes. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Returns all stored bytes and empties the store. */
  take(): Buffer {
    const bytes = this.bytes()
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return bytes
  }
}
