/** One gRPC stream over `node:http2`: passes on encoded messages and decodes none. */

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'
import { status } from '../../src/model/status-codes.ts'
import type { SessionFlow, StreamFlow } from '../../src/transport/flow.ts'
import { type MessageTimeLimits, MessageTimer } from '../../src/transport/message-timer.ts'
import { BadFrame, type FrameBudget, type FrameBuffers, FrameReader } from '../../src/xds/stream/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { after, deadlineAfter, type Timer } from '../runtime/timers.ts'
import { retryMetadata } from './retry-info.ts'

/** A stream, as services use it. */
export interface GrpcStream {
  /** Address of the client, for log lines. */
  readonly peer: string
  /** The request headers: the metadata of the call. */
  readonly headers: IncomingHttpHeaders
  /** Identifies the connection: the same object for all of its streams. */
  readonly connection: object
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean
  /** Whether both ends of the connection have loopback addresses. */
  readonly isLocal: boolean
  /** The ends of the connection: the same object for all of its streams. */
  readonly ends: ConnectionEnds
  /** The caller by client certificate, if that is valid and trusted at present; undefined in plain text. */
  readonly certificateCaller: Caller | undefined
  /** Milliseconds for which bytes have been outstanding without progress. */
  readonly stillMs: number
  /** Bytes that were written and have not been accepted by the kernel yet. */
  readonly outstanding: number
  /** The gRPC status with which this side ended the stream; undefined before. */
  readonly status: number | undefined
  /**
   * Delivers the client's messages one at a time: the next one when the promise for the previous one has settled. Nothing is read
   * meanwhile.
   */
  onMessage(take: (message: Buffer) => Promise<void>): void
  /** Delivers each message of the client at once. The buffer is valid during the call only: it is reused for the next message. */
  onBorrowed(listen: (message: Buffer) => void): void
  /** Called when the client has closed its side and all of its messages have been processed. */
  onEnd(listen: () => void): void
  /**
   * Called when the stream is ended because it made no progress: nothing was sent for the send timeout, or a message of the client did
   * not arrive completely in time.
   */
  onStandstill(listen: (reason: string) => void): void
  onClose(listen: () => void): void
  /** Writes buffers in pieces. `done` is called when the kernel has accepted the last one, or with `failed` when it will not. */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void
  /**
   * Starts a trial: only this many more bytes are sent until {@link endTrial} is called. `passed` is called when the kernel has accepted
   * them. A trial under way is not restarted.
   */
  beginTrial(bytes: number, passed: () => void): void
  /** Ends the trial, if there is one: everything may be sent. */
  endTrial(): void
  /**
   * Ends the stream with a gRPC status, after the message that is being sent. `retryAfterMs`: a retry delay for the client, in
   * milliseconds.
   */
  end(code: number, message: string, retryAfterMs?: number): void
  /**
   * Ends the stream with a gRPC status, and the connection as soon as its other streams have ended; the client needs a new connection for
   * new streams.
   */
  release(code: number, message: string): void
}

/** Properties and resources that a stream shares with its connection or server. */
export interface StreamParts {
  /** Address of the client. */
  readonly peer: string
  readonly headers: IncomingHttpHeaders
  readonly isSecure: boolean
  readonly isLocal: boolean
  readonly ends: ConnectionEnds
  /** The caller of the connection; evaluated at each use, because certificates expire. */
  readonly certificateCaller: () => Caller | undefined
  readonly flow: SessionFlow
  readonly budget: FrameBudget
  readonly buffers: FrameBuffers
  /** Maximum size of a received message, in bytes. */
  readonly limit: number
  readonly messageTimeLimits: MessageTimeLimits
  /** Called when the stream ends with an error. */
  refused(): void
  /** The set of streams that are in the middle of receiving a message. */
  readonly reading: ReadingStreams
}

/** A set of streams that are in the middle of receiving a message. */
export interface ReadingStreams {
  add(stream: Http2GrpcStream): void
  delete(stream: Http2GrpcStream): void
}

const cancel = 8
const noError = 0
/** How long the client may take to close its side after the status was sent, in milliseconds. */
const closeMs = 1000
/** How long an ended stream may take to close after its last message was sent, in milliseconds; then it is reset. */
const endMs = 10_000

/** Maximum time for which messages of one stream are processed before other streams get their turn, in milliseconds. */
const turnMs = 20

/** A stream of a server whose response headers were sent with `waitForTrailers`. */
export class Http2GrpcStream implements GrpcStream {
  readonly peer: string
  readonly headers: IncomingHttpHeaders
  readonly #stream: ServerHttp2Stream
  readonly #parts: StreamParts
  readonly #flow: StreamFlow
  readonly #reader: FrameReader
  readonly #messageTimer: MessageTimer
  #trailers = trailersOf(0, '')
  #ended = false
  #stoodStill: ((reason: string) => void) | undefined
  /** Timer of the pending close action; cancelled when the stream closes. */
  #deadline: Timer | undefined
  /** Number of reasons for which reading is paused. */
  #holds = 0
  /** Settles when all received messages have been processed. */
  #taken: Promise<void> = Promise.resolve()

  constructor(stream: ServerHttp2Stream, parts: StreamParts) {
    this.peer = parts.peer
    this.headers = parts.headers
    this.#stream = stream
    this.#parts = parts
    this.#reader = new FrameReader(parts.limit, parts.buffers)
    this.#messageTimer = new MessageTimer(parts.messageTimeLimits)
    this.#flow = parts.flow.open({
      send: (piece, accepted) => this.#send(piece, accepted),
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

  get ends(): ConnectionEnds {
    return this.#parts.ends
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
      // Several messages can only be waiting if they were read in one chunk, because reading is paused after that.
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

  /** Processes messages for a limited time; the rest of the chunk is processed after other streams had as much time. */
  #read(bytes: Buffer, listen: (message: Buffer) => void): void {
    // The stream is over: its messages must not be processed, and the rest of a partial message must not be waited for.
    if (this.#ended || this.#stream.destroyed) return
    const started = monotonicMs()
    try {
      if (this.#reader.expected === undefined) this.#messageTimer.begin()
      this.#messageTimer.came()
      const taken = this.#reader.take(bytes, (message) => {
        this.#flow.messageReceived()
        this.#messageTimer.begin()
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

  beginTrial(bytes: number, passed: () => void): void {
    this.#flow.beginTrial(bytes, passed)
  }

  endTrial(): void {
    this.#flow.endTrial()
  }

  end(code: number, message: string, retryAfterMs?: number): void {
    if (this.#ended || this.#stream.destroyed) return
    this.#ended = true
    this.#trailers = trailersOf(code, message, retryAfterMs)
    this.#parts.reading.delete(this)
    if (code !== status.ok) this.#parts.refused()
    this.#flow.finish(() => {
      this.#stream.end()
      this.#unlessClosed(endMs, () => this.#reset())
    })
  }

  release(code: number, message: string): void {
    this.#stream.session?.close()
    this.end(code, message)
  }

  /** Charges elapsed milliseconds to a message that is being received. */
  chargeReading(ms: number): void {
    // While reading is paused, the delay is not the client's.
    if (this.#holds > 0) return
    if (!this.#messageTimer.charge(ms, this.#reader.expected ?? 0)) return
    this.#giveUp('the client did not finish sending a message in time', this.#flow.isAtBoundary)
  }

  #giveUp(reason: string, atBoundary: boolean): void {
    if (this.#stream.destroyed) return
    // The stream was ended before, but its last message cannot be sent.
    if (this.#ended) return this.#reset()
    this.#stoodStill?.(reason)
    if (atBoundary) return this.end(status.deadlineExceeded, reason)
    this.#ended = true
    this.#reset()
  }

  #reset(): void {
    this.#stream.close(cancel)
    // On a connection whose peer does not read, the reset frame waits in the queue; the stream is destroyed all the same.
    this.#unlessClosed(closeMs, () => this.#stream.destroy())
  }

  #unlessClosed(ms: number, then: () => void): void {
    this.#deadline?.cancel()
    this.#deadline = this.#stream.destroyed ? undefined : deadlineAfter(ms, then).unref()
  }

  /** Pauses reading until the returned function is called. */
  #hold(): () => void {
    this.#holds++
    this.#stream.pause()
    return () => {
      if (--this.#holds === 0) this.#stream.resume()
    }
  }

  #send(piece: readonly Buffer[], accepted: (failed: boolean) => void): void {
    const stream = this.#stream
    stream.cork()
    for (const [index, part] of piece.entries()) {
      if (index === piece.length - 1) stream.write(part, (error) => accepted(error != null))
      else stream.write(part)
    }
    stream.uncork()
  }

  #sendTrailers(): void {
    const { ':status': _, 'content-type': __, ...trailers } = this.#trailers
    this.#stream.sendTrailers(trailers)
    // A client that has closed its side ends the stream; for other clients, the wait is limited.
    this.#unlessClosed(closeMs, () => {
      this.#stream.close(noError)
      this.#unlessClosed(endMs, () => this.#reset())
    })
  }
}

/** The headers of a response that consists of a status only. */
export function trailersOf(code: number, message: string, retryAfterMs?: number) {
  return {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    ...(message ? { 'grpc-message': percentEncoded(message) } : {}),
    ...(retryAfterMs === undefined ? {} : retryMetadata(code, message, retryAfterMs)),
  }
}

/** Encodes a status message for a header as gRPC requires: `%` and bytes other than printable ASCII as `%XX`. */
function percentEncoded(message: string): string {
  let encoded = ''
  for (const byte of Buffer.from(message)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}
