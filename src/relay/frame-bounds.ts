/** Finds the boundaries of gRPC messages in a byte stream that arrives in chunks. */
import { status } from '../model/status-codes.ts'
import { BadFrame } from '../xds/stream/frames.ts'

const prefixLength = 5

/** A piece of the stream: all or part of a prefix, or all or part of a message. */
export interface Piece {
  readonly part: 'prefix' | 'message'
  readonly from: number
  readonly to: number
  /** The length in bytes of the message whose prefix this piece completes. Undefined for other pieces. */
  readonly begins: number | undefined
  /** Whether the message ends with this piece. */
  readonly ends: boolean
}

/** Tracks message boundaries by the length prefixes. The messages are not parsed. */
export class FrameBounds {
  readonly #prefix = Buffer.alloc(prefixLength)
  #prefixed = 0
  #left = 0

  /** Whether the stream is between two messages. */
  get isBetween(): boolean {
    return this.#prefixed === 0
  }

  /** Splits bytes into pieces, in order. Throws {@link BadFrame} for a compressed message. */
  *pieces(bytes: Buffer): Generator<Piece> {
    let at = 0
    while (at < bytes.length) {
      const from = at
      if (this.#prefixed < prefixLength) {
        const taken = bytes.copy(this.#prefix, this.#prefixed, at)
        this.#prefixed += taken
        at += taken
        if (this.#prefix[0] !== 0) throw new BadFrame(status.unimplemented, 'compressed messages are not supported')
        const isWhole = this.#prefixed === prefixLength
        if (isWhole) this.#left = this.#prefix.readUInt32BE(1)
        const ends = isWhole && this.#left === 0
        const begins = isWhole ? this.#left : undefined
        if (ends) this.#prefixed = 0
        yield { part: 'prefix', from, to: at, begins, ends }
      } else {
        at = Math.min(bytes.length, at + this.#left)
        this.#left -= at - from
        const ends = this.#left === 0
        if (ends) this.#prefixed = 0
        yield { part: 'message', from, to: at, begins: undefined, ends }
      }
    }
  }
}
