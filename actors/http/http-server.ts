/**
 * The HTTP/1.1 server of all pages, of both programs: bounds what one client can take of connections, memory and time (docs/limits.md). The
 * linter refuses other servers of `node:http`.
 */
// biome-ignore lint/style/noRestrictedImports: the one place that makes servers
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { clientKey } from '../../src/model/client-address.ts'
import { FairSlots } from '../../src/model/fair-slots.ts'
import { after } from '../runtime/timers.ts'
import { PacedConnection } from './paced-connection.ts'
import { RequestTurns } from './request-turns.ts'
import { LocalSocket, type SocketPlace } from './unix-socket.ts'

/** The bounds of a server. */
export interface HttpBounds {
  /** Maximum number of connections. One client ({@link clientKey}) may have half of them. */
  readonly connections: number
  /** Maximum time for receiving a request, in milliseconds. */
  readonly requestMs: number
  /** How long a connection stays open without a request, in milliseconds; undefined: five seconds. */
  readonly idleMs?: number | undefined
}

/** Settings of a server. */
export interface HttpServerOptions extends HttpBounds {
  /** Makes the server of connections over TLS; without it, connections are in plain text. */
  readonly secure?: (options: ServerOptions) => SecureServer
  /** Called for each connection that is closed because of `connections`. */
  readonly refused?: () => void
  /** Takes connections in plain text that begin as HTTP/2, of which the given bytes were read; they have no slot here. */
  readonly http2?: ((socket: Socket, first: Buffer) => void) | undefined
}

/**
 * Bounds of all servers: the maximum interval between two checks of `requestMs` and the time without progress after which an unread response
 * ends its connection, in milliseconds; the maximum of unsent bytes of a server; and the number of connections that the kernel keeps until
 * they are accepted.
 */
const bounds = { checkMs: 5000, standstillMs: 30_000, unsentBytes: 67_108_864, backlog: 4096 }

/** Status for requests that Node fails to read, by error code; 400 for all other codes. */
const unreadable: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** A connection that holds a slot. Over TLS it is that of the handshake, of which nothing is known but its age. */
type Holder = PacedConnection | Socket

/**
 * A server that answers one request of a connection at a time ({@link PacedConnection}), clients in turns ({@link RequestTurns}), and
 * closes connections beyond its bounds, those of the client with the most connections first, and of these the one that has been idle or
 * answered for longest ({@link FairSlots}). A response that is not read ends its connection after 30 s, or earlier when other responses
 * need the memory.
 */
export class HttpServer {
  readonly #server: Server | SecureServer
  readonly #slots: FairSlots<Holder>
  readonly #refused: () => void
  readonly #turns = new RequestTurns()
  /** Unsent bytes of the connections whose client does not read its response; the one that has not read for longest first. */
  readonly #unsent = new Map<PacedConnection, number>()
  #unsentBytes = 0
  #local: LocalSocket | undefined
  #isEnding = false

  constructor(serve: RequestListener, { connections, requestMs, idleMs, secure, refused = () => undefined, http2 }: HttpServerOptions) {
    this.#slots = new FairSlots(connections, Math.max(1, Math.floor(connections / 2)))
    this.#refused = refused
    const times = { requestTimeout: requestMs, headersTimeout: requestMs, connectionsCheckingInterval: Math.min(requestMs, bounds.checkMs) }
    const options = { ...times, ...(idleMs !== undefined && { keepAliveTimeout: idleMs }) }
    this.#server = secure?.(options) ?? createServer(options)
    this.#pace(secure ? 'secureConnection' : 'connection', http2)
    this.#server.prependListener('connection', () => this.#turns.accepted())
    if (secure) this.#server.prependListener('connection', (socket: Socket) => this.#accept(socket, socket))
    this.#server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#answering(request, response)
      serve(request, response)
    })
    answerUnreadable(this.#server)
  }

  /** The port that the server listens on; undefined when it does not listen, and for a unix socket. */
  get port(): number | undefined {
    return (this.#server.address() as AddressInfo | null)?.port
  }

  /** Starts to listen; on all addresses of both families without a host. Rejects when the address cannot be listened on. */
  listen(host: string | undefined, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: bounds.backlog }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  /** Starts to listen on a unix socket ({@link LocalSocket.open}). */
  listenLocally(place: SocketPlace): Promise<void> {
    this.#local = new LocalSocket(this.#server, place)
    return this.#local.open()
  }

  /** Stops accepting connections. Requests on open connections are still answered. */
  stopListening(): void {
    this.#local?.close()
    this.#server.close()
  }

  /**
   * Ends in order. For some milliseconds, in which those who look this server up are told that it goes, connections are accepted still, and each ends
   * with its next answer; then nothing is accepted, and as long again is waited for answers that are being made.
   */
  async end(ms: number): Promise<void> {
    this.#isEnding = true
    await new Promise((resolve) => after(ms, () => resolve(undefined)))
    const ended = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    const deadline = after(ms, () => this.#server.closeAllConnections())
    await ended
    deadline.cancel()
  }

  /** Stops listening and closes all connections. */
  close(): Promise<void> {
    this.#local?.close()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  /** Puts a {@link PacedConnection} before the server's own listener of new connections. */
  #pace(announced: 'connection' | 'secureConnection', http2: HttpServerOptions['http2']): void {
    const serve = this.#server.listeners(announced) as ((connection: PacedConnection) => void)[]
    this.#server.removeAllListeners(announced)
    this.#server.on(announced, (socket: Socket) => {
      const connection = new PacedConnection(socket, {
        turns: this.#turns,
        standstillMs: bounds.standstillMs,
        unsent: (of, bytes) => this.#keepUnsent(of, bytes),
        http2,
      })
      if (announced === 'connection') this.#accept(connection, socket)
      for (const listener of serve) listener.call(this.#server, connection)
    })
  }

  #accept(holder: Holder, { remoteAddress }: Socket): void {
    const leaving = this.#slots.take(clientKey(remoteAddress), holder)
    holder.once('close', () => this.#slots.release(holder))
    if (!leaving) return
    leaving.destroy()
    this.#refused()
  }

  #answering(request: IncomingMessage, response: ServerResponse): void {
    const connection = request.socket as unknown as PacedConnection
    connection.answering(request, response)
    if (this.#isEnding) response.shouldKeepAlive = false
    this.#slots.mark(connection, true)
    response.once('close', () => this.#slots.mark(connection, false))
  }

  #keepUnsent(connection: PacedConnection, bytes: number): void {
    this.#unsentBytes += bytes - (this.#unsent.get(connection) ?? 0)
    if (bytes === 0) this.#unsent.delete(connection)
    else this.#unsent.set(connection, bytes)
    if (bytes === 0) return
    for (const oldest of this.#unsent.keys()) {
      if (this.#unsentBytes <= bounds.unsentBytes || oldest === connection) return
      oldest.destroy()
    }
  }
}

/** Makes a server answer unreadable requests with an error status and the reason, and close the connection. Errors of clients that are gone are ignored. */
function answerUnreadable(server: Server | SecureServer): void {
  server.on('clientError', (error: NodeJS.ErrnoException & { readonly reason?: string }, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const status = unreadable[error.code ?? ''] ?? '400 Bad Request'
    const body = `the request cannot be read: ${error.reason ?? error.message}\n`
    const headers = `Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}`
    socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`)
  })
}
