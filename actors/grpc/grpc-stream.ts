/** One gRPC stream over `node:http2`: messages in, buffers out, nothing decoded. */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import { status } from '../../src/model/status-codes.ts'
import { Arrival, type ArrivalLimits } from '../../src/push/pacing/arrival.ts'
import type { SessionFlow, StreamFlow } from '../../src/push/pacing/flow.ts'
import { BadFrame, type FrameBudget, type FrameBuffers, FrameReader } from '../../src/xds/stream/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { after, deadlineAfter, type Timer } from '../runtime/timers.ts'
import { retryMetadata } from './retry-info.ts'

/** A stream as the services see it. */
export interface GrpcStream {
  /** Address of the other side, for messages. */
  readonly peer: string
  /** What the client sent ahead of its messages: the metadata of the call. */
  readonly headers: IncomingHttpHeaders
  /** The same object for all streams of a connection. */
  readonly connection: object
  /** Whether it came over TLS. */
  readonly isSecure: boolean
  /** Whether both ends of its connection have loopback addresses. */
  readonly isLocal: boolean
  /** Who has presented a client certificate that is valid and trusted at present; undefined in plain text. */
  readonly certificateCaller: Caller | undefined
  /** Milliseconds for which bytes have been outstanding without progress. */
  readonly stillMs: number
  /** Bytes that were written and have not left yet. */
  readonly outstanding: number
  /** The gRPC status that this side ended the stream with, if it did. */
  readonly status: number | undefined
  /** Takes the messages of the client one after the other; the next when the promise of the last is settled, and nothing is read until then. */
  onMessage(take: (message: Buffer) => Promise<void>): void
  /** Hears each message of the client at once. The message is valid only during the call: its bytes are used again for the next. */
  onBorrowed(listen: (message: Buffer) => void): void
  /** The client has said all it will say, and all of it was taken. */
  onEnd(listen: () => void): void
  /** The stream was ended because it stood still: nothing left it for the send timeout, or a message of the client did not come. */
  onStandstill(listen: (reason: string) => void): void
  onClose(listen: () => void): void
  /** Writes buffers in pieces; `done` hears when the kernel has taken the last, or that it will not. */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void
  /** Lets only so many more bytes leave until {@link go}; `passed` hears when the kernel has taken them. A trial that is under way goes on. */
  try(bytes: number, passed: () => void): void
  /** Ends the trial, if there is one: everything may leave. */
  go(): void
  /** Ends the stream with a gRPC status, after what is half sent; the client is told when another try is worth it, in milliseconds, if that is given. */
  end(code: number, message: string, retryAfterMs?: number): void
  /** Ends the stream with a gRPC status, and the connection as soon as its other streams have ended; new streams need a new connection. */
  release(code: number, message: string): void
}

/** What streams share with others of their connection or server. */
export interface StreamParts {
  /** Address of the other side. */
  readonly peer: string
  readonly headers: IncomingHttpHeaders
  readonly isSecure: boolean
  readonly isLocal: boolean
  /** Of the connection, asked each time: certificates expire. */
  readonly certificateCaller: () => Caller | undefined
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
/** How long the other half of a stream may stay open after its status was sent, in milliseconds. */
const closeMs = 1000
/** How long a stream may take to be over once it was ended and its last message has left, in milliseconds; then it is reset. */
const endMs = 10_000

/** How long the messages of one stream may take the thread at a time, in milliseconds. */
const turnMs = 20

/** A stream of a server whose response headers were sent with `waitForTrailers`. */
export class Http2GrpcStream implements GrpcStream {
  readonly peer: string
  readonly headers: IncomingHttpHeaders
  readonly #stream: ServerHttp2Stream
  readonly #parts: StreamParts
  readonly #flow: StreamFlow
  readonly #reader: FrameReader
  readonly #arrival: Arrival
  #trailers = trailersOf(0, '')
  #ended = false
  #stoodStill: ((reason: string) => void) | undefined
  /** What happens unless the stream is closed before. */
  #deadline: Timer | undefined
  /** Reasons for which nothing is read at present. */
  #holds = 0
  /** Settles when all messages that came were taken. */
  #taken: Promise<void> = Promise.resolve()

  constructor(stream: ServerHttp2Stream, parts: StreamParts) {
    this.peer = parts.peer
    this.headers = parts.headers
    this.#stream = stream
    this.#parts = parts
    this.#reader = new FrameReader(parts.limit, parts.buffers)
    this.#arrival = new Arrival(parts.arrival)
    this.#flow = parts.flow.open({
      send: (piece, left) => this.#send(piece, left),
      stoodStill: (reason, atBoundary) => this.#giveUp(reason, atBoundary),
    })
    stream.on('wantTrailers', () => this.#sendTrailers())
    stream.on('close', () => {
      this.#deadline?.cancel()
      parts.reading.delete(this)
      parts.flow.close(this.#flow)
    })
  }

  get connection(): object {
    return this.#parts.flow
  }

  get isSecure(): boolean {
    return this.#parts.isSecure
  }

  get isLocal(): boolean {
    return this.#parts.isLocal
  }

  get certificateCaller(): Caller | undefined {
    return this.#parts.certificateCaller()
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

  onMessage(take: (message: Buffer) => Promise<void>): void {
    const waiting: Buffer[] = []
    const takeAll = async () => {
      const readOn = this.#hold()
      try {
        for (const message of waiting) if (!this.#ended && !this.#stream.destroyed) await take(message)
      } catch (error) {
        this.end(status.internal, (error as Error).message)
      }
      waiting.length = 0
      readOn()
    }
    this.onBorrowed((message) => {
      // More of them than one come only with the bytes that were read together.
      if (waiting.push(Buffer.from(message)) === 1) this.#taken = takeAll()
    })
  }

  onBorrowed(listen: (message: Buffer) => void): void {
    this.#stream.on('data', (bytes: Buffer) => {
      const wait = this.#parts.budget.spend(bytes.length, monotonicMs)
      if (wait > 0) after(wait, this.#hold()).unref()
      this.#read(bytes, listen)
    })
  }

  /** Reads messages for a while; what is left of the bytes then is read after others had as long. */
  #read(bytes: Buffer, listen: (message: Buffer) => void): void {
    // What a client left behind that is gone would be read by nobody, and be waited for for good.
    if (this.#ended || this.#stream.destroyed) return
    const started = monotonicMs()
    try {
      if (this.#reader.expected === undefined) this.#arrival.begin()
      this.#arrival.came()
      const taken = this.#reader.take(bytes, (message) => {
        this.#flow.heard()
        this.#arrival.begin()
        if (!this.#ended) listen(message)
        return monotonicMs() - started < turnMs
      })
      if (this.#reader.expected === undefined) this.#parts.reading.delete(this)
      else this.#parts.reading.add(this)
      if (taken < bytes.length) this.#readLater(bytes.subarray(taken), monotonicMs() - started, listen)
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error
      this.end(error.status, error.message)
    }
  }

  #readLater(bytes: Buffer, ms: number, listen: (message: Buffer) => void): void {
    const readOn = this.#hold()
    this.#taken = new Promise((resolve) => {
      after(ms, () => {
        this.#read(bytes, listen)
        readOn()
        resolve()
      }).unref()
    })
  }

  onEnd(listen: () => void): void {
    this.#stream.on('end', async () => {
      for (let taken: Promise<void> | undefined; taken !== this.#taken; await taken) taken = this.#taken
      listen()
    })
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

  try(bytes: number, passed: () => void): void {
    this.#flow.try(bytes, passed)
  }

  go(): void {
    this.#flow.go()
  }

  end(code: number, message: string, retryAfterMs?: number): void {
    if (this.#ended || this.#stream.destroyed) return
    this.#ended = true
    this.#trailers = trailersOf(code, message, retryAfterMs)
    this.#parts.reading.delete(this)
    this.#flow.finish(() => {
      this.#stream.end()
      this.#unlessClosed(endMs, () => this.#reset())
    })
  }

  release(code: number, message: string): void {
    this.#stream.session?.close()
    this.end(code, message)
  }

  /** Time passed in the middle of a message. */
  chargeReading(ms: number): void {
    // While this side does not read, it is not the client that keeps the message waiting.
    if (this.#holds > 0) return
    if (!this.#arrival.charge(ms, this.#reader.expected ?? 0)) return
    this.#giveUp('a message of the client did not come', this.#flow.isAtBoundary)
  }

  #giveUp(reason: string, atBoundary: boolean): void {
    if (this.#stream.destroyed) return
    // It was ended before, and what was half sent then does not leave.
    if (this.#ended) return this.#reset()
    this.#stoodStill?.(reason)
    if (atBoundary) return this.end(status.deadlineExceeded, reason)
    this.#ended = true
    this.#reset()
  }

  #reset(): void {
    this.#stream.close(cancel)
    // A reset waits for its turn on a connection whose peer takes nothing; the stream is over all the same.
    this.#unlessClosed(closeMs, () => this.#stream.destroy())
  }

  #unlessClosed(ms: number, then: () => void): void {
    this.#deadline?.cancel()
    this.#deadline = this.#stream.destroyed ? undefined : deadlineAfter(ms, then).unref()
  }

  /** Reads nothing until what is returned is called. */
  #hold(): () => void {
    this.#holds++
    this.#stream.pause()
    return () => {
      if (--this.#holds === 0) this.#stream.resume()
    }
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
    const { ':status': _, 'content-type': __, ...trailers } = this.#trailers
    this.#stream.sendTrailers(trailers)
    // A client that has nothing more to say closes its half itself; one that does not is not waited for.
    this.#unlessClosed(closeMs, () => {
      this.#stream.close(noError)
      this.#unlessClosed(endMs, () => this.#reset())
    })
  }
}

/** Headers of an answer that is nothing but a status. */
export function trailersOf(code: number, message: string, retryAfterMs?: number) {
  return {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    ...(message ? { 'grpc-message': percentEncoded(message) } : {}),
    ...(retryAfterMs === undefined ? {} : retryMetadata(code, message, retryAfterMs)),
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
