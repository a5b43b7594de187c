/** DNS messages over TCP (RFC 1035, 4.2.2): each is preceded by its length. */

/** Prepends the length to a message. */
export function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(2 + message.length)
  frame.writeUInt16BE(message.length, 0)
  message.copy(frame, 2)
  return frame
}

/** Splits a byte stream into messages. Buffers at most one incomplete message, at most 64 KiB, in memory of its own. */
export class MessageReader {
  #length = Buffer.alloc(2)
  #lengthFilled = 0
  #body: Buffer | undefined
  #filled = 0

  /** Consumes bytes and calls `each` for every complete message until `each` returns false. Returns the number of bytes consumed. */
  take(bytes: Buffer, each: (message: Buffer) => unknown): number {
    let at = 0
    while (at < bytes.length) {
      if (this.#lengthFilled < 2) {
        this.#length[this.#lengthFilled++] = bytes[at++] as number
        if (this.#lengthFilled < 2) continue
        this.#body = Buffer.allocUnsafe(this.#length.readUInt16BE(0))
        this.#filled = 0
      }
      const body = this.#body as Buffer
      const taken = bytes.copy(body, this.#filled, at)
      this.#filled += taken
      at += taken
      if (this.#filled < body.length) break
      this.#lengthFilled = 0
      this.#body = undefined
      if (each(body) === false) break
    }
    return at
  }
}
