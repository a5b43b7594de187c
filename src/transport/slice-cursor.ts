/** A position in a list of buffers, from which consecutive pieces are taken without copying. */
export class SliceCursor {
  readonly #parts: readonly Buffer[]
  #part = 0
  #offset = 0
  /** Bytes that have not been taken yet. */
  remaining: number

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
    this.remaining = parts.reduce((sum, part) => sum + part.length, 0)
  }

  /** Returns the next bytes as views, at most `most` of them; an empty list at the end. */
  take(most: number): Buffer[] {
    const piece: Buffer[] = []
    let room = most
    while (room > 0 && this.#part < this.#parts.length) {
      const part = this.#parts[this.#part] as Buffer
      const end = Math.min(part.length, this.#offset + room)
      if (end > this.#offset) piece.push(this.#offset === 0 && end === part.length ? part : part.subarray(this.#offset, end))
      room -= end - this.#offset
      this.remaining -= end - this.#offset
      this.#offset = end
      if (end === part.length) {
        this.#part++
        this.#offset = 0
      }
    }
    return piece
  }
}
