/** Copies one part of the metrics page (docs/agent.md, H4). */
import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * The maximum size of a part and of a line, in bytes, and in how many pieces a part may arrive: a number, and one more for so many bytes.
 * Each piece costs CPU, however small it is.
 */
const limits = { part: 268_435_456, line: 1_048_576, pieces: 20_000, bytesOfPiece: 256 }

/**
 * Copies whole lines as they arrive, with back-pressure. A last line that is cut off by an error is not written. Rejects with the reason
 * when the part exceeds a limit or breaks off, and when the receiver is gone.
 */
export async function copyLines(part: IncomingMessage, to: ServerResponse): Promise<void> {
  const lines = new Lines()
  let arrived = Promise.withResolvers<void>()
  let end: Error | 'whole' | undefined
  const ended = (how: Error | 'whole') => {
    end ??= how
    arrived.resolve()
  }
  // Each piece is an event; a read of the stream would join them.
  part.on('data', (piece: Buffer) => {
    try {
      lines.add(piece)
      if (lines.isLong) part.pause()
      arrived.resolve()
    } catch (error) {
      ended(error as Error)
      part.destroy()
    }
  })
  part.on('end', () => ended('whole'))
  part.on('error', ended)
  part.on('close', () => ended(new Error('the answer broke off')))
  while (end === undefined || lines.isWaiting) {
    await arrived.promise
    arrived = Promise.withResolvers()
    if (end !== undefined) arrived.resolve()
    await write(to, lines.taken(end === 'whole'))
    if (end instanceof Error) throw end
    part.resume()
  }
}

/** The bytes that have arrived and are not written yet. */
class Lines {
  #waiting: Buffer[] = []
  #bytes = 0
  #length = 0
  #pieces = 0
  /** The bytes since the last end of a line. */
  #line = 0

  /** Whether there are bytes. */
  get isWaiting(): boolean {
    return this.#bytes > 0
  }

  /** Whether so many bytes wait that the sender should. */
  get isLong(): boolean {
    return this.#bytes > limits.line
  }

  /** Adds a piece. Throws an Error when a limit is exceeded. */
  add(piece: Buffer): void {
    this.#length += piece.length
    if (this.#length > limits.part) throw new Error(`more than ${limits.part} bytes`)
    if (++this.#pieces > limits.pieces + this.#length / limits.bytesOfPiece)
      throw new Error(`${this.#pieces} pieces that have ${this.#length} bytes together`)
    const end = piece.lastIndexOf(0x0a) + 1
    this.#line = end > 0 ? piece.length - end : this.#line + piece.length
    this.#waiting.push(piece)
    this.#bytes += piece.length
    if (this.#line > limits.line) throw new Error(`a line of more than ${limits.line} bytes`)
  }

  /** Removes and returns the whole lines; at the end of the part also the last one, which gets an end of line if it has none. */
  taken(isEnded: boolean): Buffer {
    const bytes = Buffer.concat(this.#waiting)
    const whole = bytes.length - this.#line
    const rest = bytes.subarray(whole)
    this.#waiting = isEnded || rest.length === 0 ? [] : [rest]
    this.#bytes = isEnded ? 0 : rest.length
    if (!isEnded) return bytes.subarray(0, whole)
    return rest.length > 0 ? Buffer.concat([bytes, Buffer.from('\n')]) : bytes
  }
}

async function write(to: ServerResponse, bytes: Buffer): Promise<void> {
  if (to.destroyed) throw new Error('the scraper closed its connection')
  if (bytes.length === 0 || to.write(bytes)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const event of ['drain', 'close']) to.once(event, resolve)
  await promise
  for (const event of ['drain', 'close']) to.off(event, resolve)
}
