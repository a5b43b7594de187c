/** gRPC frames: responses put together around slices that were encoded before, and requests cut out of the bytes that come. */
import { textField } from '../slab/wire.ts'
import type { Response } from './session.ts'

const prefixLength = 5

/** The frame of a response: prefix and head, the resources as they are, and the tail. */
export function responseFrame(response: Response, delta: boolean): Buffer[] {
  const removed = delta ? response.plan.removed.map((name) => textField(6, name)) : []
  const tail = Buffer.concat([textField(4, response.typeUrl), textField(5, response.nonce), ...removed])
  const version = textField(1, response.version)
  const length = version.length + response.plan.length + tail.length
  const head = Buffer.concat([framePrefix(length), version])
  return joinSmall([head, ...response.plan.chunks, tail])
}

/** A whole message as one frame. */
export function messageFrame(message: Uint8Array): Buffer {
  return Buffer.concat([framePrefix(message.length), message])
}

function framePrefix(length: number): Buffer {
  const prefix = Buffer.allocUnsafe(prefixLength)
  prefix[0] = 0
  prefix.writeUInt32BE(length, 1)
  return prefix
}

/** Responses below this many bytes leave in one write. */
const oneWrite = 32_768

function joinSmall(parts: Buffer[]): Buffer[] {
  const total = parts.reduce((sum, part) => sum + part.length, 0)
  return total <= oneWrite ? [Buffer.concat(parts, total)] : parts
}

/** A frame that cannot be taken; `status` is the gRPC status that says why. */
export class BadFrame extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Where messages that came in several pieces are put together: one place for all streams of a thread, because each message is read at once. */
let scratch = Buffer.alloc(0)
/** Messages above this many bytes are put together in a place of their own. */
const scratchLimit = 4_194_304

function gather(parts: readonly Buffer[], length: number): Buffer {
  if (length > scratchLimit) return Buffer.concat(parts, length)
  if (scratch.length < length) scratch = Buffer.allocUnsafeSlow(Math.min(scratchLimit, length * 2))
  let at = 0
  for (const part of parts) at += part.copy(scratch, at)
  return scratch.subarray(0, length)
}

/** Cuts messages out of a stream of bytes. */
export class FrameReader {
  readonly #limit: number
  #parts: Buffer[] = []
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Takes bytes and hands on the messages that are complete. A message is valid only during the call: its bytes are used
   * again for the next. Throws {@link BadFrame} for one that is too large or compressed.
   */
  take(bytes: Buffer, each: (message: Buffer) => void): void {
    this.#parts.push(bytes)
    this.#length += bytes.length
    while (this.#length >= prefixLength) {
      const prefix = this.#peek()
      if (prefix[0] !== 0) throw new BadFrame(12, 'compressed messages are not supported')
      const length = prefix.readUInt32BE(1)
      if (length > this.#limit) throw new BadFrame(8, `received message larger than max (${length} vs. ${this.#limit})`)
      if (this.#length < prefixLength + length) return
      const parts = this.#cut(prefixLength + length)
      each((parts.length === 1 ? (parts[0] as Buffer) : gather(parts, prefixLength + length)).subarray(prefixLength))
    }
  }

  /** Takes so many bytes off the front. */
  #cut(length: number): Buffer[] {
    const taken: Buffer[] = []
    let left = length
    while (left > 0) {
      const part = this.#parts.shift() as Buffer
      taken.push(part.subarray(0, left))
      if (part.length > left) this.#parts.unshift(part.subarray(left))
      left -= Math.min(left, part.length)
    }
    this.#length -= length
    return taken
  }

  #peek(): Buffer {
    const [first] = this.#parts
    if (first && first.length >= prefixLength) return first
    return Buffer.concat(this.#parts, prefixLength)
  }
}
