/** A gRPC server over raw `node:http2` streams. It passes on encoded messages and decodes none (docs/decisions.md). */
import { rm } from 'node:fs/promises'
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Server, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import type { ClientTrust, VerifiedClient } from '../../src/identity/client-trust.ts'
import { LineBounds } from '../../src/logging/line-bounds.ts'
import { count } from '../../src/model/counts.ts'
import { status } from '../../src/model/status-codes.ts'
import { FleetPace } from '../../src/transport/fleet-pace.ts'
import { KnownAddresses, knownAddressWords } from '../../src/transport/known-addresses.ts'
import { messageTimeLimits } from '../../src/transport/message-timer.ts'
import { replicaHeader } from '../../src/transport/replica-header.ts'
import { FrameBuffers } from '../../src/xds/stream/frames.ts'
import { sharing } from '../http/address.ts'
import { serveWith, tlsDefaults } from '../http/certificate.ts'
import { limitConnections } from '../http/connection-limit.ts'
import { type PassedListening, passedServer } from '../http/passed-connection.ts'
import { PresentedChains } from '../http/presented-chains.ts'
import { LocalSocket, type SocketDirectory } from '../http/unix-socket.ts'
import { monotonicMs, wallClockMs } from '../runtime/clock.ts'
import type { ScopedLogger } from '../runtime/logger.ts'
import type { MetricRegistry } from '../runtime/metrics.ts'
import { after } from '../runtime/timers.ts'
import { ConnectionChecks } from './connection-checks.ts'
import { grpcMetrics } from './grpc-metrics.ts'
import { type GrpcStream, Http2GrpcStream, trailersOf } from './grpc-stream.ts'
import { HandshakeGate } from './handshake-gate.ts'
import { type ConnectionLimits, checkInterval, Http2Connection } from './http2-connection.ts'
import type { Method, Methods } from './methods.ts'
import { type AnswerPage, GrpcPages, type PageCall } from './pages.ts'
import { messageStreams, unaryStreams } from './rpc-streams.ts'
import type { StandstillTimer } from './standstill-timer.ts'

/** A listening address. An empty host means all addresses. */
export interface Listening {
  readonly host: string
  readonly port: number
}

/** A unix socket to listen on; only processes of the server's own user may connect ({@link LocalSocket}). */
export interface LocalListening {
  readonly path: string
  readonly directory: SocketDirectory
}

/** Settings of a server. {@link Listening} in plain text, over TLS, or both. */
export interface GrpcServerOptions {
  readonly plain: Listening | LocalListening | PassedListening | undefined
  /** Listens once the first certificate is set ({@link GrpcServer.useCertificate}). */
  readonly secure: Listening | undefined
  /** Number of servers, each on its own thread, that listen on the same addresses; the kernel distributes connections among them. */
  readonly sharers: number
  /** Maximum number of connections; further ones are closed on accept. */
  readonly maxConnections: number
  /** Maximum number of concurrent streams on a connection. */
  readonly maxStreams: number
  /**
   * The same over TLS until the client has presented a credential ({@link GrpcServer.trust}): streams that wait for a decision do not pile
   * up. The default is {@link maxStreams}.
   */
  readonly maxStrangerStreams?: number
  /** Maximum size of a client's message in bytes, for methods without a limit of their own. */
  readonly messageBytes: number
  /** How long a stream may make no progress while bytes are outstanding, in milliseconds; may be infinite. */
  readonly sendTimeout: number
  readonly connections: ConnectionLimits
  /** The name of this replica, which clients are told with each call that is opened ({@link replicaHeader}); empty or undefined: none. */
  readonly replica?: string
}

/** Dependencies of a server. */
export interface GrpcServerParts {
  readonly log: ScopedLogger
  readonly metrics: MetricRegistry
  /** The timer that charges streams for time without progress. */
  readonly standstillTimer: StandstillTimer
  readonly methods: Methods
  /** Answers requests over TLS that are not gRPC calls. Without it, and in plain text, such requests are refused. */
  readonly page?: AnswerPage
  /**
   * The roots by which client certificates are verified over TLS ({@link GrpcServer.trustChanged}). Clients need no certificate; a
   * connection with a certificate that is refused is ended. Without any roots, client certificates are ignored.
   */
  readonly trust: ClientTrust
  /** The addresses whose clients presented a credential, here or to other servers that share them. By default the server has its own. */
  readonly known?: KnownAddresses
  /** Called for each connection that is closed because of `maxConnections`. */
  refused(): void
}

/**
 * Receive window of a connection and of a stream, in bytes. An ACK repeats all resource names of its type, 110 KB for 2,400 endpoint
 * resources, and should fit: every window update in its middle costs both sides an extra turn (docs/decisions.md).
 */
const receiveWindow = 262_144
/** Number of pieces that a stream may have handed over at a time: over TLS, one is encrypted while the other is being sent. */
const piecesOverTls = 2

/**
 * Maximum number of connections that wait to be accepted while the thread is busy; the kernel has a limit of its own
 * (`net.core.somaxconn`). It drops further ones, whose clients repeat them after a second or more.
 */
const backlog = 4096

/** A socket whose session is being created, and its client by certificate. */
interface Arriving {
  readonly socket: Socket
  readonly client: VerifiedClient | undefined | { readonly refused: string }
}

/** A method as the server dispatches it. */
interface Served {
  readonly open: (stream: GrpcStream) => void
  readonly messageBytes: number
}

/** A server of bidirectional streams and unary calls, in plain text and over TLS. */
export class GrpcServer {
  readonly #options: GrpcServerOptions
  readonly #log: ScopedLogger
  readonly #methods: ReadonlyMap<string, Served>
  readonly #standstillTimer: StandstillTimer
  readonly #pages: GrpcPages | undefined
  /** What listens: for TLS a {@link HandshakeGate}. */
  readonly #servers: { readonly server: Server; readonly at: Listening | LocalListening | PassedListening }[] = []
  readonly #sessions = new Map<ServerHttp2Session, Http2Connection>()
  /** Connections with outstanding bytes, and streams that are in the middle of receiving a message. */
  readonly #busy = new Set<Http2Connection>()
  readonly #reading = new Set<Http2GrpcStream>()
  /** The checks of connections whose sockets are open, including those whose session has ended. */
  readonly #checks: ConnectionChecks
  readonly #buffers = new FrameBuffers()
  readonly #pace: FleetPace
  readonly #lines = new LineBounds()
  readonly #trust: ClientTrust
  readonly #chains = new PresentedChains()
  /** The connections over TLS whose clients have not presented a credential, by their flow control. */
  readonly #strangers = new Map<object, ServerHttp2Session>()
  #certificate: ServingCertificate | undefined
  #secure: Http2SecureServer | undefined
  #gate: HandshakeGate | undefined
  readonly #certified = Promise.withResolvers<void>()
  #opened: Promise<void> | undefined
  #isClosed = false
  #local: LocalSocket | undefined

  constructor(options: GrpcServerOptions, parts: GrpcServerParts) {
    this.#options = options
    this.#log = parts.log
    this.#standstillTimer = parts.standstillTimer
    const { page, log } = parts
    this.#pages = page && new GrpcPages(page, (error) => log.error(`a debug page failed: ${error instanceof Error ? error.message : error}`))
    this.#trust = parts.trust
    this.#methods = this.#served(parts)
    this.#checks = new ConnectionChecks(checkInterval(options.connections))
    this.#pace = new FleetPace(options.sendTimeout)
    parts.standstillTimer.add((ms) => this.#charge(ms))
    const settings = {
      settings: { maxConcurrentStreams: options.maxStreams, initialWindowSize: receiveWindow, maxHeaderListSize: 16_384 },
      maxSessionMemory: 64,
      maxSessionInvalidFrames: 100,
      streamResetBurst: 1000,
      streamResetRate: 33,
      unknownProtocolTimeout: 10_000,
    }
    const { plain, secure, maxConnections: most } = options
    const limited: Server[] = []
    if (plain) {
      const server = createServer(settings)
      this.#serve(server, 'connection')
      const listener = 'passedAt' in plain ? passedServer(plain, (socket) => void server.emit('connection', socket)) : server
      if (!('path' in plain)) listener.on('error', fail)
      this.#servers.push({ server: listener, at: plain })
      limited.push(server)
    }
    if (secure) {
      const server = this.#secureServer(settings, parts)
      this.#servers.push({ server, at: secure })
      limited.push(server)
    }
    limitConnections(limited, most, {
      refused: () => parts.refused(),
      say: (refused, address) =>
        parts.log.warn(
          `refused ${count(refused, 'connection')}, the last from ${address}: the maximum is ${count(most, 'connection')}, and half of that from one client; it follows from the limit of file descriptors`,
        ),
      isKept: (address) => this.#gate?.isKnown(address) ?? false,
    })
  }

  /**
   * Starts to listen; further calls have no effect. Resolves when connections are accepted, including those over TLS, which wait for the
   * first certificate. Rejects when a unix socket path cannot be listened on.
   */
  open(): Promise<void> {
    this.#opened ??= Promise.all(
      this.#servers.map(async ({ server, at }) => {
        if (server === this.#gate?.listener) await this.#certified.promise
        if (this.#isClosed) return
        if ('path' in at) return this.#listenLocally(server, at)
        if ('passedAt' in at) return listenAnew(server, at.passedAt)
        const { host, port } = at
        await new Promise<void>((resolve) => server.listen({ host: host || undefined, port, backlog, ...sharing(this.#options.sharers) }, resolve))
      }),
    ).then(() => undefined)
    return this.#opened
  }

  #listenLocally(server: Server, at: LocalListening): Promise<void> {
    this.#local = new LocalSocket(server, { ...at, warn: (line) => this.#log.warn(line) })
    return this.#local.open()
  }

  /** Uses a checked certificate ({@link readCertificate}) for new connections. Open connections are not affected. */
  useCertificate(certificate: ServingCertificate): void {
    this.#certificate = certificate
    this.#renew()
    this.#certified.resolve()
  }

  /**
   * Applies a change of trust to new connections. Open connections stay if their client is still trusted; the others end within ten
   * seconds.
   */
  trustChanged(): void {
    this.#renew()
    for (const connection of this.#sessions.values()) connection.checkTrust((client) => this.#trust.stillTrusts(client))
  }

  /**
   * A client at an address presented a valid credential: its further handshakes wait for nobody ({@link HandshakeGate.trust}), and
   * `connection`, as its streams have it, may have as many streams as others.
   */
  trust(address: string, connection: object): void {
    this.#gate?.trust(address)
    const session = this.#strangers.get(connection)
    this.#strangers.delete(connection)
    if (session && !session.closed) session.settings({ maxConcurrentStreams: this.#options.maxStreams })
  }

  #renew(): void {
    if (this.#secure && this.#certificate) serveWith(this.#secure, this.#certificate, this.#trust.bundle)
  }

  #served({ methods, metrics, log }: GrpcServerParts): Map<string, Served> {
    const measure = grpcMetrics(metrics)
    const taken = [...methods].map(([path, method]): [string, Served] => {
      const failed = (error: unknown) => log.error(`${path} failed: ${error instanceof Error ? error.message : error}`)
      const { open, messageBytes } = opened(path, method, this.#options.messageBytes, failed)
      return [path, { open: measure(path, method.type, open), messageBytes }]
    })
    return new Map(taken)
  }

  /** `announced`: the event with which the server announces a new socket. */
  #serve(server: Http2Server | Http2SecureServer, announced: 'connection' | 'secureConnection'): void {
    const { maxStreams, maxStrangerStreams = maxStreams } = this.#options
    // The server creates the session of a socket, with the settings of the moment, synchronously after announcing the socket.
    let arriving: Arriving | undefined
    server.prependListener(announced, (socket: Socket) => {
      arriving = { socket, client: this.#clientOf(socket) }
      const isStranger = announced === 'secureConnection' && !arriving.client
      server.updateSettings({ maxConcurrentStreams: isStranger ? maxStrangerStreams : maxStreams })
    })
    server.on('session', (session: ServerHttp2Session) => this.#session(session, arriving as Arriving))
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#stream(stream, headers))
    server.on('sessionError', (error: Error) => this.#log.debug(`connection error: ${error.message}`))
  }

  /** Returns what listens for connections over TLS. */
  #secureServer(settings: object, { metrics, known = ownKnownAddresses() }: GrpcServerParts): Server {
    const asked = { requestCert: true, rejectUnauthorized: false, ALPNCallback: this.#chains.alpn }
    const server = createSecureServer({ ...settings, ...asked, ...tlsDefaults })
    server.on('tlsClientError', (error: Error) => this.#log.debug(`TLS handshake failed: ${error.message}`))
    this.#serve(server, 'secureConnection')
    server.on('error', fail)
    this.#secure = server
    this.#gate = new HandshakeGate(server, known, metrics, (address, what) =>
      this.#warn(`${address}|handshake`, `connection from ${address} ${what}`),
    )
    this.#gate.listener.on('error', fail)
    return this.#gate.listener
  }

  /** Stops listening and closes connections gracefully; those still open after a second are destroyed. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#local?.close()
    this.#certified.resolve()
    const closed = Promise.all(
      this.#servers.map(({ server }) => {
        const closer = server === this.#gate?.listener ? this.#gate : server
        return new Promise<void>((resolve) => closer.close(() => resolve()))
      }),
    )
    if (this.#servers.every(({ server }) => !server.listening) && this.#sessions.size === 0) return
    for (const session of this.#sessions.keys()) session.close()
    const hard = after(1000, () => {
      for (const connection of this.#sessions.values()) connection.cut()
    })
    await closed
    hard.cancel()
  }

  /** Verifies the client of a socket. Undefined in plain text, without a certificate, and without any roots. */
  #clientOf(socket: Socket): Arriving['client'] {
    const presented = socket instanceof TLSSocket ? this.#chains.of(socket) : undefined
    if (!presented || this.#trust.bundle === '') return undefined
    const { authorized, authorizationError } = socket as TLSSocket
    return authorized ? this.#trust.verify(presented, wallClockMs()) : { refused: String(authorizationError) }
  }

  #session(session: ServerHttp2Session, { socket, client }: Arriving): void {
    session.on('error', (error) => this.#log.debug(`session error: ${error.message}`))
    if (client && 'refused' in client) {
      this.#logEnd(socket.remoteAddress ?? '', `client certificate refused: ${client.refused}`)
      session.destroy()
      socket.destroy()
      return
    }
    if (client) this.#gate?.trust(socket.remoteAddress ?? '')
    session.setLocalWindowSize(receiveWindow)
    const limits = {
      pace: this.#pace,
      maxPieces: 'encrypted' in socket ? piecesOverTls : 1,
      now: monotonicMs,
    }
    const connection = new Http2Connection(session, { socket, client }, this.#options.connections, limits, {
      busy: () => {
        this.#busy.add(connection)
        this.#standstillTimer.wake()
      },
      closed: () => this.#checks.delete(connection),
      dead: (peer, reason) => this.#logEnd(peer, reason),
    })
    this.#sessions.set(session, connection)
    if (connection.isSecure && !client) this.#strangers.set(connection.flow, session)
    this.#checks.add(connection)
    session.on('close', () => {
      this.#sessions.delete(session)
      this.#strangers.delete(connection.flow)
      this.#busy.delete(connection)
    })
  }

  /** Logs why a connection was ended. The number of lines for one address and reason is limited. */
  #logEnd(peer: string, reason: string): void {
    this.#warn(`${peer}|${reason}`, `connection from ${peer} ended: ${reason}`)
  }

  #warn(kind: string, text: string): void {
    const line = this.#lines.bounded(kind, text, monotonicMs())
    if (line !== undefined) this.#log.warn(line)
  }

  /** Charges elapsed milliseconds to all connections and streams under way. Returns whether there are any. */
  #charge(ms: number): boolean {
    for (const connection of this.#busy) if (!connection.flow.charge(ms)) this.#busy.delete(connection)
    for (const stream of this.#reading) stream.chargeReading(ms)
    return this.#busy.size + this.#reading.size > 0
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', (error) => this.#log.debug(`stream error: ${error.message}`))
    // The stream may be closed before this event is handled.
    const connection = this.#sessions.get(stream.session as ServerHttp2Session)
    if (!connection || stream.destroyed || stream.closed) return stream.close()
    const method = this.#methods.get(headers[':path'] ?? '')
    if (headers[':method'] !== 'POST' || !isGrpc(headers['content-type'])) {
      if (this.#pages && connection.isSecure && !connection.isExpired) return void this.#pages.serve(stream, pageCall(headers, connection))
      stream.respond({ ':status': headers[':method'] === 'POST' ? 415 : 405 }, { endStream: true })
      return connection.refused()
    }
    if (!method) {
      stream.respond(trailersOf(status.unimplemented, `unknown method ${headers[':path']?.slice(0, 200)}`), { endStream: true })
      return connection.refused()
    }
    if (connection.isExpired) {
      // The client has to present a new certificate, on a new connection.
      stream.respond(trailersOf(status.unavailable, 'the client certificate has expired'), { endStream: true })
      return connection.dismiss('the client certificate has expired')
    }
    const { replica = '' } = this.#options
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', ...(replica !== '' && { [replicaHeader]: replica }) },
      { waitForTrailers: true },
    )
    const opened = new Http2GrpcStream(stream, {
      peer: connection.peer,
      headers,
      isSecure: connection.isSecure,
      isLocal: connection.isLocal,
      ends: connection.ends,
      certificateCaller: () => connection.caller,
      flow: connection.flow,
      budget: connection.budget,
      buffers: this.#buffers,
      limit: method.messageBytes,
      messageTimeLimits,
      refused: () => connection.refused(),
      reading: {
        add: (reading) => {
          this.#reading.add(reading)
          this.#standstillTimer.wake()
        },
        delete: (reading) => this.#reading.delete(reading),
      },
    })
    connection.streams.add(opened)
    stream.on('close', () => connection.streams.delete(opened))
    method.open(opened)
  }
}

/** What opens the streams of a method: its own function, without anything between, or for an RPC its handler. */
function opened(path: string, method: Method, messageBytes: number, failed: (error: unknown) => void): Served {
  if ('open' in method) return { open: (stream) => method.open(stream), messageBytes }
  const open = method.type === 'unary' ? unaryStreams(path, method, failed) : messageStreams(path, method, failed)
  return { open, messageBytes: method.bounds.requestBytes }
}

const ownKnownAddresses = () => new KnownAddresses(knownAddressWords(), '')

/** Whether a request is by the gRPC protocol: messages of protocol buffers, not gRPC-Web and not JSON. */
const isGrpc = (contentType = ''): boolean => /^application\/grpc(\+proto)?(;.*)?$/i.test(contentType)

/** Listens at a path of which this server is the only one. What one that has died left there is removed. */
async function listenAnew(server: Server, path: string): Promise<void> {
  await rm(path, { force: true })
  await new Promise<void>((resolve) => server.listen({ path, backlog }, resolve))
}

function fail(error: Error): never {
  throw error
}

function pageCall(headers: IncomingHttpHeaders, { peer, isSecure, caller, flow }: Http2Connection): PageCall {
  return { method: headers[':method'] ?? '', path: headers[':path'] ?? '', headers, peer, isSecure, certificateCaller: caller, connection: flow }
}
