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

/** Cuts messages out of a stream of bytes. */
export class FrameReader {
  readonly #limit: number
  #parts: Buffer[] = []
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Takes bytes, returns the messages that are complete. Throws {@link BadFrame} for one that is too large or compressed. */
  take(bytes: Buffer): Buffer[] {
    this.#parts.push(bytes)
    this.#length += bytes.length
    const messages: Buffer[] = []
    for (;;) {
      if (this.#length < prefixLength) return messages
      const prefix = this.#peek()
      if (prefix[0] !== 0) throw new BadFrame(12, 'compressed messages are not supported')
      const length = prefix.readUInt32BE(1)
      if (length > this.#limit) throw new BadFrame(8, `received message larger than max (${length} vs. ${this.#limit})`)
      if (this.#length < prefixLength + length) return messages
      const all = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts, this.#length)
      messages.push(all.subarray(prefixLength, prefixLength + length))
      const rest = all.subarray(prefixLength + length)
      this.#parts = rest.length > 0 ? [rest] : []
      this.#length = rest.length
    }
  }

  #peek(): Buffer {
    const [first] = this.#parts
    if (first && first.length >= prefixLength) return first
    const joined = Buffer.concat(this.#parts, this.#length)
    this.#parts = [joined]
    return joined
  }
}
