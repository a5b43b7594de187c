/** One stream of the proxy: request bytes in, response bytes out. */
import type { ServerHttp2Stream } from 'node:http2'
import { trailersOf } from '../../grpc/grpc-stream.ts'
import { deadlineAfter, type Timer } from '../../runtime/timers.ts'
import { PacedReading } from './paced-reading.ts'
import { SendQueue } from './send-queue.ts'

/**
 * How long the proxy may accept nothing while bytes are unsent, in milliseconds. The proxy reads nothing while it applies a large
 * configuration.
 */
const standstillMs = 30_000
/**
 * How long the proxy's half of a stream may stay open after the status was sent, and how long unsent bytes may take before it, in
 * milliseconds.
 */
const closeMs = 100
const endMs = 10_000

const cancel = 8

/** Events of a stream. */
export interface ProxyEvents {
  data(bytes: Buffer): void
  hasRoom(): void
  /** The stream has ended. Called once. `isExpected` is false when the stream was reset with an error or the send timeout expired. */
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
    // A proxy that half-closes its stream gets no further responses.
    stream.on('end', () => this.finish(0, ''))
    stream.on('close', () => {
      this.#deadline?.cancel()
      events.closed(!this.#stoodStill && (stream.rstCode === 0 || stream.rstCode === cancel))
    })
  }

  /** Whether further writes are ignored. */
  get isFinished(): boolean {
    return this.#isFinished || this.#stream.destroyed
  }

  /** Writes bytes. Returns whether there is room for more. */
  write(bytes: Buffer): boolean {
    return this.isFinished || (this.#queue as SendQueue).write(bytes)
  }

  /** Stops reading until {@link resume}. */
  pause(): void {
    this.#reading?.pause()
  }

  resume(): void {
    this.#reading?.resume()
  }

  /** Ends the stream with a gRPC status after the bytes written so far. Further requests of the proxy are ignored. */
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
    // Closes the stream when the client does not half-close it in time.
    this.#unlessClosed(closeMs, () => this.#stream.close())
  }

  #unlessClosed(ms: number, then: () => void): void {
    this.#deadline?.cancel()
    this.#deadline = this.#stream.destroyed ? undefined : deadlineAfter(ms, then).unref()
  }
}
