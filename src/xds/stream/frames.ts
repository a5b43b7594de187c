/** gRPC frames: response frames assembled around encoded slices, and a parser of request frames. */
import { responseHead, responseTail } from './response.ts'
import type { Response } from './session.ts'

const prefixLength = 5

/** Returns the frame of a response: prefix and head, the chunks of the plan, and the tail. */
export function responseFrame(response: Response, delta: boolean): Buffer[] {
  const tail = responseTail(response.typeUrl, response.nonce, delta ? response.plan.removed : [])
  const version = responseHead(response.version)
  const length = version.length + response.plan.length + tail.length
  const head = Buffer.concat([framePrefix(length), version])
  return joinSmall([head, ...response.plan.chunks, tail])
}

/** Returns a message as one frame. */
export function messageFrame(message: Uint8Array): Buffer {
  return Buffer.concat([framePrefix(message.length), message])
}

function framePrefix(length: number): Buffer {
  const prefix = Buffer.allocUnsafe(prefixLength)
  prefix[0] = 0
  prefix.writeUInt32BE(length, 1)
  return prefix
}

/** Responses of at most this many bytes are copied into one buffer. */
const oneWrite = 32_768

function joinSmall(parts: Buffer[]): Buffer[] {
  const total = parts.reduce((sum, part) => sum + part.length, 0)
  return total <= oneWrite ? [Buffer.concat(parts, total)] : parts
}

/** A frame that is refused; `status` is the gRPC status code. */
export class BadFrame extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The smallest and the largest size of buffers that are pooled, and the maximum total size of the pool, in bytes. */
const pooled = { smallest: 512, largest: 4_194_304, kept: 8_388_608 }

/** A pool of buffers in which the streams of a thread assemble messages. The sizes are powers of two. */
export class FrameBuffers {
  readonly #free = new Map<number, Buffer[]>()
  #kept = 0

  /** Returns a buffer of at least `length` bytes. */
  take(length: number): Buffer {
    let size = pooled.smallest
    while (size < length) size *= 2
    const free = this.#free.get(size)?.pop()
    if (!free) return Buffer.allocUnsafeSlow(size)
    this.#kept -= size
    return free
  }

  /** Returns a buffer to the pool. */
  give(buffer: Buffer): void {
    if (buffer.length > pooled.largest || this.#kept + buffer.length > pooled.kept) return
    const free = this.#free.get(buffer.length)
    if (free) free.push(buffer)
    else this.#free.set(buffer.length, [buffer])
    this.#kept += buffer.length
  }
}

/**
 * Splits a stream of bytes into gRPC messages. The work is linear in the number of bytes, however the bytes are split: the five bytes of a
 * prefix are kept aside, and a message that arrives in pieces fills one buffer. The buffer grows with the bytes received and not with the
 * length in the prefix, so its size is at most twice the bytes that the peer has sent.
 */
export class FrameReader {
  readonly #limit: number
  readonly #buffers: FrameBuffers
  readonly #prefix = Buffer.alloc(prefixLength)
  /** Bytes of the prefix that have arrived. */
  #prefixed = 0
  /** The start of a message that did not arrive in one piece. */
  #body: Buffer | undefined
  #filled = 0

  constructor(limit: number, buffers: FrameBuffers) {
    this.#limit = limit
    this.#buffers = buffers
  }

  /**
   * The announced length in bytes of the message whose middle the stream is in; 0 while the prefix is incomplete, undefined between two
   * messages.
   */
  get expected(): number | undefined {
    if (this.#prefixed === 0) return undefined
    return this.#prefixed < prefixLength ? 0 : this.#prefix.readUInt32BE(1)
  }

  /**
   * Parses bytes and passes each complete message to `each`, until `each` returns false. Returns the number of bytes consumed. A message is
   * valid only during the call of `each`: its buffer is reused. Throws {@link BadFrame} for a message that is too large or compressed.
   */
  take(bytes: Buffer, each: (message: Buffer) => unknown): number {
    let at = 0
    while (at < bytes.length) {
      if (this.#prefixed < prefixLength) {
        const taken = bytes.copy(this.#prefix, this.#prefixed, at)
        this.#prefixed += taken
        at += taken
        if (this.#prefixed < prefixLength) return at
      }
      const length = this.#announced()
      const missing = length - this.#filled
      if (bytes.length - at < missing) {
        this.#keep(bytes.subarray(at), length)
        return bytes.length
      }
      const rest = bytes.subarray(at, at + missing)
      at += missing
      if (this.#hand(rest, length, each) === false) return at
    }
    return at
  }

  #announced(): number {
    if (this.#prefix[0] !== 0) throw new BadFrame(12, 'compressed messages are not supported')
    const length = this.#prefix.readUInt32BE(1)
    if (length > this.#limit) throw new BadFrame(8, `received message larger than max (${length} vs. ${this.#limit})`)
    return length
  }

  /** Buffers a piece of a message. */
  #keep(part: Buffer, length: number): void {
    if (part.length === 0) return
    const filled = this.#filled + part.length
    if (!this.#body || this.#body.length < filled) {
      const larger = this.#buffers.take(Math.min(length, filled))
      if (this.#body) {
        this.#body.copy(larger, 0, 0, this.#filled)
        this.#buffers.give(this.#body)
      }
      this.#body = larger
    }
    part.copy(this.#body, this.#filled)
    this.#filled = filled
  }

  /** Passes a message on whose last piece has arrived. */
  #hand(rest: Buffer, length: number, each: (message: Buffer) => unknown): unknown {
    if (this.#filled === 0) {
      this.#prefixed = 0
      return each(rest)
    }
    this.#keep(rest, length)
    const body = this.#body as Buffer
    this.#body = undefined
    this.#filled = 0
    this.#prefixed = 0
    try {
      return each(body.subarray(0, length))
    } finally {
      this.#buffers.give(body)
    }
  }
}

/** Small DATA frames that a connection may send at once, how many more each millisecond, and below how many bytes a frame is small. */
const smallFrames = { burst: 65_536, perMs: 10, bytes: 256 }

/**
 * Limits the rate of very small DATA frames of a connection, since each costs as much CPU as one of 16 KiB. A message of 64 KiB in frames
 * of one byte is read at once; beyond that, 10,000 small frames a second are read.
 */
export class FrameBudget {
  #left = smallFrames.burst
  #at: number

  /** `now` is monotonic time in milliseconds, as in {@link spend}. */
  constructor(now: number) {
    this.#at = now
  }

  /** Counts a frame. Returns for how many milliseconds the connection is not to be read; 0: read on. */
  spend(bytes: number, now: () => number): number {
    if (bytes >= smallFrames.bytes || --this.#left > 0) return 0
    const at = now()
    this.#left = Math.min(smallFrames.burst, this.#left + (at - this.#at) * smallFrames.perMs)
    this.#at = at
    return this.#left > 0 ? 0 : pauseMs
  }
}

/** How long a connection that has used up its small frames is not read, in milliseconds. */
const pauseMs = 100
