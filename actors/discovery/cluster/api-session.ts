/**
 * The connection to an API server: one of HTTP/2 for all requests, opened with the first and opened again when it is lost. A connection that
 * stays silent is pinged, and closed when the ping is not answered.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { ClusterAccess, ClusterStatus } from '../../../protocols/messages/orchestrator.ts'
import { RequestBudget } from '../../../src/orchestrator/request-budget.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, checkEvery, deadlineAfter, type Timer } from '../../runtime/timers.ts'
import { openApiSocket } from './api-socket.ts'

/** Settings of a session. */
export interface SessionParts {
  readonly perSecond: number
  readonly burst: number
  readonly userAgent: string
  /** Returns how the server is reached; `isRefused` after it refused the credential. */
  readonly access: (isRefused: boolean) => Promise<ClusterAccess>
  /** Where connections and requests are logged. */
  readonly log: ScopedLogger
}

/** The present state of a session. */
export type SessionStatus = Pick<ClusterStatus, 'server' | 'connectedMs' | 'connections' | 'lastError'>

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

/** How long the first bytes of an answer and the answer to a ping may take, and the pause after which one is sent, in ms. */
const limits = { answerMs: 60_000, pingMs: 15_000, idleMs: 15_000, checkMs: 5000 }
/** The window of a connection, in bytes: that of HTTP/2 would make a long list wait for the distance to the server. */
const windowBytes = 4 * 1024 * 1024

interface Connection {
  readonly session: ClientHttp2Session
  readonly access: ClusterAccess
  readonly keepalive: SessionKeepalive
  readonly since: number
}

/** A request waits this long for the budget before it is logged, in milliseconds. */
const longWaitMs = 1000

/** Sends requests to an API server. */
export class ApiSession {
  readonly #parts: SessionParts
  readonly #budget: RequestBudget
  #connection: Connection | undefined
  /** The connection that is being opened. */
  #opening: { readonly access: ClusterAccess; readonly connection: Promise<Connection> } | undefined
  #isRefused = false
  readonly #open = new Set<ClientHttp2Session>()
  #connections = 0
  #lastError: string | undefined
  /** When the server was last heard of, answers to pings included, in monotonic milliseconds. */
  #heardAt: number | undefined
  #isClosed = false

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#budget = new RequestBudget(parts.perSecond, parts.burst, monotonicMs())
  }

  /** Sends a request when the budget permits. */
  send(call: ApiCall, events: RequestEvents): ApiRequest {
    const request = new Request(events)
    const waitMs = this.#budget.take(monotonicMs())
    if (waitMs > longWaitMs)
      this.#parts.log.info(`${call.method} ${call.path} waits for ${Math.round(waitMs / 1000)} s: --orchestratorApiQPS and --orchestratorApiBurst`)
    const timer = after(waitMs, () => {
      this.#send(call, request).catch((error: Error) => request.broken(error.message))
    })
    request.abandons(() => timer.cancel())
    return request
  }

  get status(): SessionStatus {
    const { session, access, since } = this.#connection ?? {}
    const isOpen = session !== undefined && !session.closed && !session.destroyed
    return {
      server: access?.server,
      connectedMs: isOpen && since !== undefined ? Math.round(monotonicMs() - since) : undefined,
      ...{ connections: this.#connections, lastError: this.#lastError },
    }
  }

  /** How long ago the server was last heard of, answers to pings included, in milliseconds; undefined: never. */
  get silentMs(): number | undefined {
    return this.#heardAt === undefined ? undefined : monotonicMs() - this.#heardAt
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
    const { session, keepalive } = await this.#connectionFor(access)
    // A request of an open connection leaves at once; otherwise it would wait in the session until it is connected.
    if (permit && session.connecting) await once(session, 'connect')
    if (request.isOver) return
    permit?.()
    const { pathname } = new URL(access.server)
    const headers = {
      ...{ ':method': method, ':path': `${pathname === '/' ? '' : pathname}${path}` },
      ...{ accept, 'user-agent': this.#parts.userAgent },
      ...(body ? { 'content-type': body.type } : {}),
      ...access.headers,
    }
    // Without being told so, the library sends nothing after the head of a DELETE, whose body has the preconditions.
    const stream = session.request(headers, { endStream: method === 'GET' })
    if (method !== 'GET') stream.end(body?.text)
    stream.on('data', () => keepalive.heard())
    const { log } = this.#parts
    stream.on('response', (headers) => {
      keepalive.heard()
      log.debug(`${method} ${path}: ${headers[':status']}`)
    })
    request.follows(stream)
  }

  /** The connection, or another one where certificates have changed: streams of the one before stay until they end. */
  async #connectionFor(access: ClusterAccess): Promise<Connection> {
    const known = this.#connection
    if (known && !known.session.closed && !known.session.destroyed) {
      if (isSameWay(known.access, access)) return known
      known.session.close()
    }
    if (this.#opening && isSameWay(this.#opening.access, access)) return this.#opening.connection
    const opening = { access, connection: this.#connect(access) }
    this.#opening = opening
    try {
      return (this.#connection = await opening.connection)
    } catch (error) {
      this.#ended(access.server, (error as Error).message)
      throw error
    } finally {
      if (this.#opening === opening) this.#opening = undefined
    }
  }

  #ended(server: string, reason: string): void {
    // Said once for each reason: while the server is away, every request finds the same.
    if (reason !== this.#lastError) this.#parts.log.info(`the connection to ${server}: ${reason}`)
    this.#lastError = reason
  }

  async #connect(access: ClusterAccess): Promise<Connection> {
    const { server } = access
    const socket = await openApiSocket(access)
    if (this.#isClosed) {
      socket.destroy()
      throw new Error('the session is closed')
    }
    const settings = { enablePush: false, initialWindowSize: windowBytes / 4 }
    const session = connect(server, { createConnection: () => socket, settings })
    this.#open.add(session)
    const keepalive = new SessionKeepalive(session, socket, (at) => {
      this.#heardAt = at
    })
    session.on('connect', () => session.setLocalWindowSize(windowBytes))
    // Its streams are told of the error.
    session.on('error', (error) => this.#ended(server, error.message))
    session.on('goaway', () => session.close())
    session.on('close', () => {
      keepalive.close()
      this.#open.delete(session)
      this.#parts.log.debug(`the connection to ${server} is closed`)
    })
    this.#connections++
    this.#parts.log.debug(`connected to ${server}`)
    return { session, access, keepalive, since: monotonicMs() }
  }
}

const isSameWay = (one: ClusterAccess, other: ClusterAccess): boolean =>
  (['server', 'proxy', 'ca', 'cert', 'key', 'serverName', 'verifies'] as const).every((part) => one[part] === other[part])

/** Pings a session that has been silent, and ends it when the ping is not answered. */
class SessionKeepalive {
  readonly #session: ClientHttp2Session
  readonly #socket: Duplex
  readonly #timer: Timer
  readonly #told: (at: number) => void
  #heardAt = monotonicMs()
  #pingedAt: number | undefined

  /** `told` is called with the time whenever the server was heard of. */
  constructor(session: ClientHttp2Session, socket: Duplex, told: (at: number) => void) {
    this.#session = session
    this.#socket = socket
    this.#told = told
    this.#timer = checkEvery(limits.checkMs, () => this.#check()).unref()
  }

  /** Bytes have come. */
  heard(): void {
    this.#heardAt = monotonicMs()
    this.#pingedAt = undefined
    this.#told(this.#heardAt)
  }

  close(): void {
    this.#timer.cancel()
  }

  #check(): void {
    // A session that was closed in order is not told of its end before the peer has closed the connection too, which a silent one never does.
    if (this.#session.destroyed) {
      this.close()
      this.#socket.destroy()
      return
    }
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
    let isAnswered = false
    stream.on('response', (headers) => {
      isAnswered = true
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
        if (!isAnswered || stream.aborted || stream.rstCode !== 0) return this.broken(`the connection was lost (code ${stream.rstCode})`)
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
