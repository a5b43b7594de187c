/** One gRPC stream over `node:http2`: messages in, buffers out, nothing decoded. */
import type { ServerHttp2Stream } from 'node:http2'
import { Arrival, type ArrivalLimits } from '../../src/push/pacing/arrival.ts'
import type { SessionFlow, StreamFlow } from '../../src/push/pacing/flow.ts'
import { BadFrame, type FrameBudget, type FrameBuffers, FrameReader } from '../../src/xds/session/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { after } from '../runtime/timers.ts'

/** A stream as the services see it. */
export interface GrpcStream {
  /** Address of the other side, for messages. */
  readonly peer: string
  /** The same object for all streams of a connection. */
  readonly connection: object
  /** Milliseconds for which bytes have been outstanding without progress. */
  readonly stillMs: number
  /** Bytes that were written and have not left yet. */
  readonly outstanding: number
  /** The gRPC status that this side ended the stream with, if it did. */
  readonly status: number | undefined
  onMessage(listen: (message: Buffer) => void): void
  /** The client has said all it will say. */
  onEnd(listen: () => void): void
  /** The stream was ended because it stood still: nothing left it for the send timeout, or a message of the client did not come. */
  onStandstill(listen: (reason: string) => void): void
  onClose(listen: () => void): void
  /** Writes buffers in pieces; `done` hears when the kernel has taken the last, or that it will not. */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void
  /** Ends the stream with a gRPC status, after what is half sent. */
  end(code: number, message: string): void
  /** Ends the stream with a gRPC status, and the connection as soon as its other streams have ended; new streams need a new connection. */
  release(code: number, message: string): void
}

/** What streams share with others of their connection or server. */
export interface StreamParts {
  readonly flow: SessionFlow
  readonly budget: FrameBudget
  readonly buffers: FrameBuffers
  /** Largest message that is taken, in bytes. */
  readonly limit: number
  readonly arrival: ArrivalLimits
  /** Streams in the middle of a message. */
  readonly reading: ReadingStreams
}

/** Streams in the middle of a message of their client. */
export interface ReadingStreams {
  add(stream: Http2GrpcStream): void
  delete(stream: Http2GrpcStream): void
}

const cancel = 8
const noError = 0
const deadlineExceeded = 4
/** How long the other half of a stream may stay open after its status was sent, in milliseconds. */
const closeMs = 1000

/** A stream of a server whose response headers were sent with `waitForTrailers`. */
export class Http2GrpcStream implements GrpcStream {
  readonly peer: string
  readonly #stream: ServerHttp2Stream
  readonly #parts: StreamParts
  readonly #flow: StreamFlow
  readonly #reader: FrameReader
  readonly #arrival: Arrival
  #trailers = trailersOf(0, '')
  #ended = false
  #stoodStill: ((reason: string) => void) | undefined

  constructor(stream: ServerHttp2Stream, parts: StreamParts) {
    this.peer = stream.session?.socket.remoteAddress ?? ''
    this.#stream = stream
    this.#parts = parts
    this.#reader = new FrameReader(parts.limit, parts.buffers)
    this.#arrival = new Arrival(parts.arrival)
    this.#flow = parts.flow.open({
      send: (piece, left) => this.#send(piece, left),
      stoodStill: (atBoundary) => this.#giveUp('nothing was taken within the send timeout', atBoundary),
    })
    stream.on('wantTrailers', () => this.#sendTrailers())
    stream.on('close', () => {
      parts.reading.delete(this)
      parts.flow.close(this.#flow)
    })
  }

  get connection(): object {
    return this.#parts.flow
  }

  get stillMs(): number {
    return this.#flow.stillMs
  }

  get outstanding(): number {
    return this.#flow.outstanding
  }

  get status(): number | undefined {
    return this.#ended ? Number(this.#trailers['grpc-status']) : undefined
  }

  onMessage(listen: (message: Buffer) => void): void {
    const each = (message: Buffer) => {
      this.#flow.heard()
      this.#arrival.begin()
      if (!this.#ended) listen(message)
    }
    this.#stream.on('data', (bytes: Buffer) => {
      if (this.#ended) return
      const wait = this.#parts.budget.spend(bytes.length, monotonicMs)
      if (wait > 0) this.#pause(wait)
      try {
        const between = this.#reader.expected === undefined
        if (between) this.#arrival.begin()
        this.#arrival.came()
        this.#reader.take(bytes, each)
        if (this.#reader.expected === undefined) this.#parts.reading.delete(this)
        else this.#parts.reading.add(this)
      } catch (error) {
        if (!(error instanceof BadFrame)) throw error
        this.end(error.status, error.message)
      }
    })
  }

  onEnd(listen: () => void): void {
    this.#stream.on('end', listen)
  }

  onStandstill(listen: (reason: string) => void): void {
    this.#stoodStill = listen
  }

  onClose(listen: () => void): void {
    this.#stream.on('close', listen)
  }

  write(parts: readonly Buffer[], done: (failed: boolean) => void): void {
    if (this.#stream.destroyed || this.#ended) done(true)
    else this.#flow.write(parts, done)
  }

  end(code: number, message: string): void {
    if (this.#ended || this.#stream.destroyed) return
    this.#ended = true
    this.#trailers = trailersOf(code, message)
    this.#parts.reading.delete(this)
    this.#flow.finish(() => this.#stream.end())
  }

  release(code: number, message: string): void {
    this.#stream.session?.close()
    this.end(code, message)
  }

  /** Time passed in the middle of a message. */
  chargeReading(ms: number): void {
    if (!this.#arrival.charge(ms, this.#reader.expected ?? 0)) return
    this.#giveUp('a message of the client did not come', !this.#flow.isBusy)
  }

  #giveUp(reason: string, atBoundary: boolean): void {
    if (this.#ended || this.#stream.destroyed) return
    this.#stoodStill?.(reason)
    if (atBoundary) this.end(deadlineExceeded, reason)
    else {
      this.#ended = true
      this.#stream.close(cancel)
    }
  }

  #pause(ms: number): void {
    this.#stream.pause()
    after(ms, () => this.#stream.resume()).unref()
  }

  #send(piece: readonly Buffer[], left: (failed: boolean) => void): void {
    const stream = this.#stream
    stream.cork()
    for (const [index, part] of piece.entries()) {
      if (index === piece.length - 1) stream.write(part, (error) => left(error != null))
      else stream.write(part)
    }
    stream.uncork()
  }

  #sendTrailers(): void {
    const { 'grpc-status': code, 'grpc-message': message } = this.#trailers
    this.#stream.sendTrailers({ 'grpc-status': code, ...(message ? { 'grpc-message': message } : {}) })
    // A client that has nothing more to say closes its half itself; one that does not is not waited for.
    after(closeMs, () => this.#stream.close(noError)).unref()
  }
}

/** Headers of an answer that is nothing but a status. */
export function trailersOf(code: number, message: string) {
  return {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    ...(message ? { 'grpc-message': percentEncoded(message) } : {}),
  }
}

/** A message as gRPC wants it in a header: bytes that are not printable ASCII, and `%`, as `%XX`. */
function percentEncoded(message: string): string {
  let encoded = ''
  for (const byte of Buffer.from(message)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}
