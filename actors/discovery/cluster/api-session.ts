/**
 * The connection to an API server: one of HTTP/2 for all requests, opened with the first and opened again when it is lost. A connection that
 * stays silent is pinged, and closed when the ping is not answered.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import type { ClusterAccess } from '../../../protocols/messages/orchestrator.ts'
import { RequestBudget } from '../../../src/orchestrator/request-budget.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, checkEvery, deadlineAfter, type Timer } from '../../runtime/timers.ts'

/** Settings of a session. */
export interface SessionParts {
  readonly perSecond: number
  readonly burst: number
  readonly userAgent: string
  /** Returns how the server is reached; `isRefused` after it refused the credential. */
  readonly access: (isRefused: boolean) => Promise<ClusterAccess>
}

/** A request to an API server. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path with its query. */
  readonly path: string
  readonly accept: string
  /** The text that is sent, and its media type. */
  readonly body?: { readonly text: string; readonly type: string }
  /** Throws an Error when the request must not be sent any more; called at the moment at which it would be. */
  readonly permit?: (() => void) | undefined
}

/** What becomes of a request. Exactly one of `ended` and `broken` is called last, and nothing after {@link ApiRequest.abandon}. */
export interface RequestEvents {
  /** The server answers with this status. */
  answered(status: number, headers: IncomingHttpHeaders): void
  /** Throws an Error when the bytes cannot be used. */
  received(bytes: Uint8Array): void
  ended(): void
  broken(reason: string): void
}

/** A request under way. */
export interface ApiRequest {
  abandon(): void
}

/** How long connecting, the first bytes of an answer, and the answer to a ping may take, and the pause after which one is sent, in ms. */
const limits = { connectMs: 10_000, answerMs: 60_000, pingMs: 15_000, idleMs: 15_000, checkMs: 5000 }
/** The window of a connection, in bytes: that of HTTP/2 would make a long list wait for the distance to the server. */
const windowBytes = 4 * 1024 * 1024

interface Connection {
  readonly session: ClientHttp2Session
  readonly access: ClusterAccess
  readonly keepalive: SessionKeepalive
}

/** Sends requests to an API server. */
export class ApiSession {
  readonly #parts: SessionParts
  readonly #budget: RequestBudget
  #connection: Connection | undefined
  #isRefused = false
  readonly #open = new Set<ClientHttp2Session>()
  #isClosed = false

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#budget = new RequestBudget(parts.perSecond, parts.burst, monotonicMs())
  }

  /** Sends a request when the budget permits. */
  send(call: ApiCall, events: RequestEvents): ApiRequest {
    const request = new Request(events)
    const timer = after(this.#budget.take(monotonicMs()), () => {
      this.#send(call, request).catch((error: Error) => request.broken(error.message))
    })
    request.abandons(() => timer.cancel())
    return request
  }

  /** The server has refused the credential: the next request has another one, if there is another. */
  refused(): void {
    this.#isRefused = true
  }

  close(): void {
    this.#isClosed = true
    for (const session of this.#open) session.destroy()
  }

  /** Closes the connection when its requests are over, so that the next request opens another. */
  renew(): void {
    this.#connection?.session.close()
  }

  async #send({ method, path, accept, body, permit }: ApiCall, request: Request): Promise<void> {
    const isRefused = this.#isRefused
    this.#isRefused = false
    const access = await this.#parts.access(isRefused)
    if (request.isOver || this.#isClosed) return
    const { session, keepalive } = this.#connectionFor(access)
    // A request of an open connection leaves at once; otherwise it would wait in the session until it is connected.
    if (permit && session.connecting) await once(session, 'connect')
    if (request.isOver) return
    permit?.()
    const { pathname } = new URL(access.server)
    const stream = session.request({
      ...{ ':method': method, ':path': `${pathname === '/' ? '' : pathname}${path}` },
      ...{ accept, 'user-agent': this.#parts.userAgent },
      ...(body ? { 'content-type': body.type } : {}),
      ...access.headers,
    })
    if (method !== 'GET') stream.end(body?.text)
    stream.on('data', () => keepalive.heard())
    request.follows(stream)
  }

  /** The connection, or another one where certificates have changed: streams of the one before stay until they end. */
  #connectionFor(access: ClusterAccess): Connection {
    const known = this.#connection
    if (known && !known.session.closed && !known.session.destroyed) {
      const isSame = (['server', 'ca', 'cert', 'key', 'serverName', 'verifies'] as const).every((part) => known.access[part] === access[part])
      if (isSame) return known
      known.session.close()
    }
    return (this.#connection = this.#connect(access))
  }

  #connect(access: ClusterAccess): Connection {
    const { server, ca, cert, key, serverName, verifies } = access
    const session = connect(server, {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert, key }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      rejectUnauthorized: verifies,
      settings: { enablePush: false, initialWindowSize: windowBytes / 4 },
    })
    this.#open.add(session)
    const unconnected = deadlineAfter(limits.connectMs, () =>
      session.destroy(new Error(`no connection to ${server} within ${limits.connectMs / 1000} s`)),
    )
    const keepalive = new SessionKeepalive(session)
    session.on('connect', () => {
      unconnected.cancel()
      session.setLocalWindowSize(windowBytes)
    })
    // Its streams are told of the error.
    session.on('error', () => undefined)
    session.on('goaway', () => session.close())
    session.on('close', () => {
      unconnected.cancel()
      keepalive.close()
      this.#open.delete(session)
    })
    return { session, access, keepalive }
  }
}

/** Pings a session that has been silent, and ends it when the ping is not answered. */
class SessionKeepalive {
  readonly #session: ClientHttp2Session
  readonly #timer: Timer
  #heardAt = monotonicMs()
  #pingedAt: number | undefined

  constructor(session: ClientHttp2Session) {
    this.#session = session
    this.#timer = checkEvery(limits.checkMs, () => this.#check()).unref()
  }

  /** Bytes have come. */
  heard(): void {
    this.#heardAt = monotonicMs()
    this.#pingedAt = undefined
  }

  close(): void {
    this.#timer.cancel()
  }

  #check(): void {
    const now = monotonicMs()
    if (this.#pingedAt !== undefined) {
      if (now - this.#pingedAt >= limits.pingMs)
        this.#session.destroy(new Error(`the connection is silent: a ping was not answered within ${limits.pingMs / 1000} s`))
    } else if (now - this.#heardAt >= limits.idleMs && !this.#session.connecting) {
      this.#pingedAt = now
      this.#session.ping((error) => {
        if (!error) this.heard()
      })
    }
  }
}

/** A request and its events. */
class Request implements ApiRequest {
  readonly #events: RequestEvents
  #end: () => void = () => undefined
  #unanswered: Timer | undefined
  isOver = false

  constructor(events: RequestEvents) {
    this.#events = events
  }

  /** Sets what ends the request. */
  abandons(end: () => void): void {
    this.#end = end
  }

  abandon(): void {
    if (this.isOver) return
    this.#over()
    this.#end()
  }

  broken(reason: string): void {
    if (this.isOver) return
    this.#over()
    this.#events.broken(reason)
  }

  follows(stream: ClientHttp2Stream): void {
    this.#end = () => stream.destroy()
    this.#unanswered = deadlineAfter(limits.answerMs, () => this.#break(stream, `no answer within ${limits.answerMs / 1000} s`))
    stream.on('response', (headers) => {
      this.#unanswered?.cancel()
      if (!this.isOver) this.#events.answered(Number(headers[':status']), headers)
    })
    stream.on('data', (bytes: Uint8Array) => {
      if (this.isOver) return
      try {
        this.#events.received(bytes)
      } catch (error) {
        this.#break(stream, (error as Error).message)
      }
    })
    stream.on('error', (error) => this.broken(error.message))
    stream.on('end', () => {
      // A stream that is reset ends too; its error or its code follows.
      setImmediate(() => {
        if (this.isOver) return
        if (stream.aborted || stream.rstCode !== 0) return this.broken(`the connection was lost (code ${stream.rstCode})`)
        this.#over()
        this.#events.ended()
      })
    })
    stream.on('close', () => setImmediate(() => this.broken('the connection was lost')))
  }

  #break(stream: ClientHttp2Stream, reason: string): void {
    this.broken(reason)
    stream.destroy()
  }

  #over(): void {
    this.isOver = true
    this.#unanswered?.cancel()
  }
}
