/** Collects bytes that come in pieces, in one place: pieces that are kept one by one cost a hundred times their length where a peer sends single bytes. */
export class CollectedBytes {
  #place = new Uint8Array()
  #length = 0

  /** The number of bytes that have been collected. */
  get length(): number {
    return this.#length
  }

  /** Adds a copy of a piece. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length
    if (length > this.#place.length) {
      const place = new Uint8Array(Math.max(length, 2 * this.#place.length))
      place.set(this.#place.subarray(0, this.#length))
      this.#place = place
    }
    this.#place.set(piece, this.#length)
    this.#length = length
  }

  /** The bytes that have been collected. They stay as they are until bytes are added. */
  get bytes(): Buffer {
    return Buffer.from(this.#place.buffer, 0, this.#length)
  }

  /** Returns the bytes and begins anew without any. */
  take(): Buffer {
    const { bytes } = this
    this.#place = new Uint8Array()
    this.#length = 0
    return bytes
  }
}
