/** One stream to discovery, on a connection of its own (docs/agent.md, X2). Bytes pass in both directions without decoding. */
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { callEnd } from '../../../src/agent/call-end.ts'
import { printable } from '../../../src/logging/layout.ts'
import { status } from '../../../src/model/status-codes.ts'
import { Keepalive } from '../../../src/transport/keepalive.ts'
import { longestReplica, replicaHeader } from '../../../src/transport/replica-header.ts'
import { wasUnanswered } from '../../http/tcp-client.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { checkEvery, deadlineAfter, type Timer } from '../../runtime/timers.ts'
import { type ConnectionCredentials, connectSession, reasonOf } from '../credentials/http2-client.ts'
import { PacedReading } from './paced-reading.ts'
import { SendQueue } from './send-queue.ts'

/** The flow-control window for responses, of the stream and of its connection, in bytes. */
const window = 1_048_576
/** The timeout of connecting, and how long discovery may accept nothing while requests are unsent, in milliseconds. */
const limits = { connectMs: 10_000, standstillMs: 5000 }
/** The idle time before a keepalive ping and the timeout of its response, in milliseconds. */
const keepalive = { intervalMs: 30_000, timeoutMs: 10_000 }

const sessionOptions = { settings: { initialWindowSize: window, enablePush: false }, maxSessionMemory: 16, maxSessionInvalidFrames: 100 }

const cancel = 8

/** The credentials of a stream. */
export interface StreamCredentials extends ConnectionCredentials {
  /** The headers of the call, with the token. */
  readonly headers: Readonly<Record<string, string>>
}

/** The end of a stream: gRPC status and message, and the minimum delay before a retry that discovery asks for, in milliseconds. */
export interface StreamEnd {
  readonly code: number
  readonly message: string
  readonly retryAfterMs: number
  /** Whether discovery sent the status. False: the connection was lost, or could not be established. */
  readonly hasStatus: boolean
  /** Whether nothing at the address accepted the connection. */
  readonly isUnanswered?: boolean
}

/** Events of a stream. */
export interface DiscoveryEvents {
  /** The connection is established; requests may be written. */
  opened(): void
  data(bytes: Buffer): void
  hasRoom(): void
  /** Discovery has sent GOAWAY. */
  leaving(): void
  /** The stream has ended. Called once, and not after {@link DiscoveryStream.close}. */
  ended(end: StreamEnd): void
}

/** One stream to discovery. */
export class DiscoveryStream {
  readonly #events: DiscoveryEvents
  readonly #session: ClientHttp2Session
  #stream: ClientHttp2Stream | undefined
  #queue: SendQueue | undefined
  #reading: PacedReading | undefined
  #trailers: IncomingHttpHeaders | undefined
  #fault: string | undefined
  /** The replica of discovery, as its answer names it; empty: it does not. */
  replica = ''
  #isOver = false
  readonly #timers: Timer[] = []

  /** Connects and opens the stream `path`. */
  constructor(address: ServerAddress, path: string, credentials: StreamCredentials, events: DiscoveryEvents) {
    this.#events = events
    const session = connectSession(address, sessionOptions, credentials)
    this.#session = session
    const tooLate = deadlineAfter(limits.connectMs, () => this.#lost(`no connection within ${limits.connectMs / 1000} s`)).unref()
    this.#timers.push(tooLate)
    session.once('connect', (_, socket) => this.#keepAlive(socket as Socket))
    session.once('remoteSettings', () => {
      tooLate.cancel()
      this.#open(path, credentials.headers)
    })
    session.on('goaway', () => this.#isOver || events.leaving())
    session.on('error', (error) => this.#lost(reasonOf(error), wasUnanswered(error)))
    session.on('close', () => this.#lost(this.#fault ?? 'the connection was closed'))
  }

  /** Whether requests may be written. */
  get isOpen(): boolean {
    return this.#queue !== undefined && !this.#isOver
  }

  /** Whether requests may be written without exceeding the send buffer. */
  get hasRoom(): boolean {
    return this.#queue?.hasRoom ?? false
  }

  /** Writes bytes of requests. Returns whether there is room for more. */
  write(bytes: Buffer): boolean {
    return this.#isOver || (this.#queue as SendQueue).write(bytes)
  }

  /** Stops reading responses until {@link resume}. */
  pause(): void {
    this.#reading?.pause()
  }

  resume(): void {
    this.#reading?.resume()
  }

  /** Ends the stream and its connection without an event. */
  close(): void {
    this.#isOver = true
    for (const timer of this.#timers) timer.cancel()
    this.#stream?.close(cancel)
    this.#session.destroy()
  }

  #open(path: string, headers: Readonly<Record<string, string>>): void {
    if (this.#isOver) return
    try {
      this.#session.setLocalWindowSize(window)
      const stream = this.#session.request({ ...headers, ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
      this.#stream = stream
      this.#listen(stream)
    } catch (error) {
      return this.#lost(reasonOf(error))
    }
    this.#events.opened()
  }

  #listen(stream: ClientHttp2Stream): void {
    this.#queue = new SendQueue(stream, limits.standstillMs, {
      hasRoom: () => this.#isOver || this.#events.hasRoom(),
      stoodStill: () => this.#lost(`it has read no requests for ${limits.standstillMs / 1000} s`),
    })
    stream.on('response', (headers) => {
      this.replica = printable(String(headers[replicaHeader] ?? '')).slice(0, longestReplica)
      // A response without messages has its status in the headers (Trailers-Only).
      if (headers['grpc-status'] !== undefined) this.#trailers = headers
      else if (headers[':status'] !== 200) this.#lost(`answered with HTTP status ${headers[':status']}`)
      else if (!String(headers['content-type'] ?? '').startsWith('application/grpc')) this.#lost('the answer is not gRPC')
    })
    stream.on('trailers', (headers) => {
      this.#trailers = headers
    })
    this.#reading = new PacedReading(stream, (bytes) => this.#isOver || this.#events.data(bytes))
    stream.on('error', (error) => {
      this.#fault ??= reasonOf(error)
    })
    // The trailers count once all bytes of responses have been read.
    stream.on('end', () => this.#trailers && this.#endedWith(this.#trailers))
    stream.on('close', () => {
      if (this.#trailers) this.#endedWith(this.#trailers)
      else this.#lost(this.#fault ?? 'the stream was reset')
    })
  }

  #endedWith(trailers: IncomingHttpHeaders): void {
    this.#end({ ...callEnd(trailers), hasStatus: true })
  }

  #lost(reason: string, isUnanswered = false): void {
    this.#end({ code: status.unavailable, message: reason, hasStatus: false, retryAfterMs: 0, isUnanswered })
  }

  #end(end: StreamEnd): void {
    if (this.#isOver) return
    this.close()
    this.#events.ended(end)
  }

  #keepAlive(socket: Socket): void {
    const life = new Keepalive(keepalive.intervalMs, keepalive.timeoutMs)
    let checkedAt = monotonicMs()
    const period = keepalive.timeoutMs
    const timer = checkEvery(period, () => {
      const now = monotonicMs()
      // The elapsed time is limited: a blocked thread or a sleeping machine did not process what arrived meanwhile.
      const next = life.check(Math.min(now - checkedAt, period * 2), socket.bytesRead)
      checkedAt = now
      if (next === 'ping' && !this.#session.destroyed) this.#session.ping(() => undefined)
      else if (next === 'give up') this.#lost('it did not answer a keepalive ping')
    })
    this.#timers.push(timer.unref())
  }
}
