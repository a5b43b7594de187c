/** DNS messages on a stream (RFC 1035, 4.2.2): each with its length before it. */

/** A message with its length. */
export function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(2 + message.length)
  frame.writeUInt16BE(message.length, 0)
  message.copy(frame, 2)
  return frame
}

/** Cuts messages out of what comes. It keeps at most one that is not complete, at most 64 KiB, in memory of its own. */
export class MessageReader {
  #length = Buffer.alloc(2)
  #lengthFilled = 0
  #body: Buffer | undefined
  #filled = 0

  /** Takes bytes and hands on each message that is complete, until `each` returns false. Returns how many bytes it took. */
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
