/** Iterates over the fields of a protobuf message without allocating an object per field, because name tables have many fields. */

/** Iterates over the fields between two offsets. An invalid field ends the iteration. */
export class Fields {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  /** The number of the current field, and its offset. */
  field = 0
  start = 0
  /** Whether the current field is length-delimited. Its bytes are then between `from` and `to`. */
  isBytes = false
  from = 0
  to = 0
  /** Whether the iteration ended at an invalid field. */
  isBroken = false

  constructor(bytes: Buffer, from: number, to: number) {
    this.#bytes = bytes
    this.#at = from
    this.#end = to
  }

  /** The bytes of the current field as Latin-1 text. */
  get text(): string {
    return this.#bytes.toString('latin1', this.from, this.to)
  }

  /** Advances to the next field. Returns false at the end. */
  next(): boolean {
    if (this.isBroken || this.#at >= this.#end) return false
    this.start = this.#at
    const tag = this.#varint()
    const type = tag % 8
    this.field = Math.floor(tag / 8)
    this.isBytes = type === 2
    if (type === 0) this.#varint()
    else if (type === 2) {
      const length = this.#varint()
      this.from = this.#at
      this.to = this.#at + length
      this.#at = this.to
    } else if (type === 1 || type === 5) this.#at += type === 1 ? 8 : 4
    else this.isBroken = true
    if (this.field === 0 || this.#at > this.#end) this.isBroken = true
    return !this.isBroken
  }

  #varint(): number {
    let value = 0
    let factor = 1
    for (let index = 0; index < 10 && this.#at < this.#end; index++) {
      const byte = this.#bytes[this.#at++] as number
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
    this.isBroken = true
    return 0
  }
}
