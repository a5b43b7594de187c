/** One stream of the proxy: requests as bytes that come, responses as bytes that leave. */
import type { ServerHttp2Stream } from 'node:http2'
import { trailersOf } from '../../grpc/grpc-stream.ts'
import { deadlineAfter, type Timer } from '../../runtime/timers.ts'
import { PacedReading } from './paced-reading.ts'
import { SendQueue } from './send-queue.ts'

/** How long the proxy may take nothing while bytes for it are outstanding, in milliseconds: it takes nothing while it applies a large configuration. */
const standstillMs = 30_000
/** How long the other half of a stream may stay open after its status was sent, and how long what was written before may take to leave, in milliseconds. */
const closeMs = 100
const endMs = 10_000

const cancel = 8

/** What the owner of a stream hears. */
export interface ProxyEvents {
  data(bytes: Buffer): void
  hasRoom(): void
  /** The stream is over, once; `isExpected` unless it was reset for an error, or stood still. */
  closed(isExpected: boolean): void
}

/** A stream of the aggregated discovery service. */
export class ProxyStream {
  readonly isDelta: boolean
  readonly #stream: ServerHttp2Stream
  #queue: SendQueue | undefined
  #reading: PacedReading | undefined
  #trailers = trailersOf(0, '')
  #isFinished = false
  #stoodStill = false
  #deadline: Timer | undefined

  constructor(stream: ServerHttp2Stream, isDelta: boolean) {
    this.#stream = stream
    this.isDelta = isDelta
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => this.#sendTrailers())
  }

  /** Starts to read. */
  listen(events: ProxyEvents): void {
    const stream = this.#stream
    this.#queue = new SendQueue(stream, standstillMs, {
      hasRoom: () => events.hasRoom(),
      stoodStill: () => {
        this.#stoodStill = true
        stream.close(cancel)
        this.#unlessClosed(closeMs, () => stream.destroy())
      },
    })
    this.#reading = new PacedReading(stream, (bytes) => this.#isFinished || events.data(bytes))
    // Who has nothing more to ask for is not told anything more either.
    stream.on('end', () => this.finish(0, ''))
    stream.on('close', () => {
      this.#deadline?.cancel()
      events.closed(!this.#stoodStill && (stream.rstCode === 0 || stream.rstCode === cancel))
    })
  }

  /** Whether it takes nothing more. */
  get isFinished(): boolean {
    return this.#isFinished || this.#stream.destroyed
  }

  /** Writes bytes. Returns whether there is room for more. */
  write(bytes: Buffer): boolean {
    return this.isFinished || (this.#queue as SendQueue).write(bytes)
  }

  /** Reads nothing until {@link resume}. */
  pause(): void {
    this.#reading?.pause()
  }

  resume(): void {
    this.#reading?.resume()
  }

  /** Ends the stream with a gRPC status, after what was written. What the proxy says from then on is not heard. */
  finish(code: number, message: string): void {
    if (this.isFinished) return
    this.#isFinished = true
    this.#trailers = trailersOf(code, message)
    this.#stream.end()
    this.resume()
    this.#unlessClosed(endMs, () => this.#stream.destroy())
  }

  #sendTrailers(): void {
    const { ':status': _, 'content-type': __, ...trailers } = this.#trailers
    this.#stream.sendTrailers(trailers)
    // A client that has nothing more to say closes its half itself; one that does not is not waited for.
    this.#unlessClosed(closeMs, () => this.#stream.close())
  }

  #unlessClosed(ms: number, then: () => void): void {
    this.#deadline?.cancel()
    this.#deadline = this.#stream.destroyed ? undefined : deadlineAfter(ms, then).unref()
  }
}
