/** gRPC over raw `node:http2` streams: frames in, frames out, nothing decoded (see ARCHITECTURE, "Decisions"). */
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { SecureServer, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { Features } from '../../src/config/features.ts'
import { LineBounds } from '../../src/logging/line-bounds.ts'
import { arrivalLimits } from '../../src/push/pacing/arrival.ts'
import { FleetPace } from '../../src/push/pacing/fleet-pace.ts'
import { FrameBuffers } from '../../src/xds/stream/frames.ts'
import { sharing } from '../http/address.ts'
import { connectionShare, descriptorLimit, limitConnections } from '../http/connection-limit.ts'
import { monotonicMs } from '../runtime/clock.ts'
import type { ScopedLogger } from '../runtime/logger.ts'
import { after } from '../runtime/timers.ts'
import { type GrpcStream, Http2GrpcStream, trailersOf } from './grpc-stream.ts'
import { Http2Connection } from './http2-connection.ts'
import type { PaceWheel } from './pace-wheel.ts'

/** A service method by its path. */
export type Methods = ReadonlyMap<string, (stream: GrpcStream) => void>

/**
 * Bytes of requests that a connection, and a stream, may send before the server has taken them. An ACK repeats all names of its
 * type, 110 KB for 2,400 endpoint resources, and has to fit in: each window update in its middle costs both sides a turn
 * (ARCHITECTURE, "Decisions").
 */
const receiveWindow = 262_144
/** Pieces that a stream may have handed over: over TLS, one is encrypted while the other leaves. */
const piecesOverTls = 2

/** The server of one writer, in plain text and over TLS. All writers listen on the same ports; the kernel spreads connections over them. */
export class GrpcServer {
  readonly #config: XdsWriterConfig
  readonly #log: ScopedLogger
  readonly #methods: Methods
  readonly #features: Features
  readonly #wheel: PaceWheel
  readonly #servers: { readonly server: Http2Server | Http2SecureServer; readonly host: string; readonly port: number }[] = []
  readonly #sessions = new Map<ServerHttp2Session, Http2Connection>()
  /** Connections with bytes outstanding, and streams in the middle of a message. */
  readonly #busy = new Set<Http2Connection>()
  readonly #reading = new Set<Http2GrpcStream>()
  readonly #buffers = new FrameBuffers()
  readonly #pace: FleetPace
  readonly #lines = new LineBounds()
  #opened: Promise<void> | undefined

  /** `refused` hears of connections that are closed at once because there are too many. */
  constructor(config: XdsWriterConfig, features: Features, log: ScopedLogger, wheel: PaceWheel, methods: Methods, refused: () => void) {
    this.#config = config
    this.#log = log
    this.#methods = methods
    this.#features = features
    this.#wheel = wheel
    const timeout = features.PILOT_XDS_SEND_TIMEOUT
    this.#pace = new FleetPace(timeout > 0 ? timeout : Number.POSITIVE_INFINITY)
    wheel.add((ms) => this.#charge(ms))
    const options = {
      settings: { maxConcurrentStreams: features.MESH_GPRC_MAXSTREAMS, initialWindowSize: receiveWindow, maxHeaderListSize: 16_384 },
      maxSessionMemory: 64,
      maxSessionInvalidFrames: 100,
      streamResetBurst: 1000,
      streamResetRate: 33,
      unknownProtocolTimeout: 10_000,
    }
    this.#serve(createServer(options), 'connection', config)
    if (config.secure) this.#serve(this.#secureServer(config.secure, options), 'secureConnection', config.secure)
    const most = connectionShare(descriptorLimit(), config.writers)
    limitConnections(
      this.#servers.map(({ server }) => server),
      most,
      refused,
      (count, address) =>
        log.warn(`refused ${count} connections, the last from ${address}: this writer has ${most}, as many as the limit of file descriptors allows`),
    )
  }

  /** Starts to listen, once. Resolves when connections are taken. */
  open(): Promise<void> {
    this.#opened ??= Promise.all(
      this.#servers.map(
        ({ server, host, port }) =>
          new Promise<void>((resolve) => server.listen({ host: host || undefined, port, ...sharing(this.#config.writers) }, resolve)),
      ),
    ).then(() => undefined)
    return this.#opened
  }

  /** `announced` is the event with which the server takes a socket. */
  #serve(
    server: Http2Server | Http2SecureServer,
    announced: 'connection' | 'secureConnection',
    { host, port }: { host: string; port: number },
  ): void {
    // The session is made while its socket is announced.
    let arriving: Socket | undefined
    server.prependListener(announced, (socket: Socket) => {
      arriving = socket
    })
    server.on('session', (session: ServerHttp2Session) => this.#session(session, arriving as Socket))
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#stream(stream, headers))
    server.on('sessionError', (error: Error) => this.#log.debug(`connection error: ${error.message}`))
    server.on('error', (error: Error) => {
      throw error
    })
    this.#servers.push({ server, host, port })
  }

  /** A client need not have a certificate; one that has must have it from the given authority. */
  #secureServer({ cert, key, ca }: SecureServer, options: object): Http2SecureServer {
    const asked = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: false }
    const server = createSecureServer({ ...options, cert, key, ...asked, minVersion: 'TLSv1.2', handshakeTimeout: 10_000 })
    server.on('secureConnection', (socket: TLSSocket) => {
      if (ca === undefined || socket.authorized || Object.keys(socket.getPeerCertificate()).length === 0) return
      this.#tell(socket.remoteAddress ?? '', `client certificate refused: ${socket.authorizationError}`)
      socket.destroy()
    })
    server.on('tlsClientError', (error: Error) => this.#log.debug(`TLS handshake failed: ${error.message}`))
    return server
  }

  /** Stops listening and ends connections, those that do not end by themselves after a moment. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#servers.map(({ server }) => new Promise<void>((resolve) => server.close(() => resolve()))))
    if (this.#servers.every(({ server }) => !server.listening) && this.#sessions.size === 0) return
    for (const session of this.#sessions.keys()) session.close()
    const hard = after(1000, () => {
      for (const connection of this.#sessions.values()) connection.cut()
    })
    await closed
    hard.cancel()
  }

  #session(session: ServerHttp2Session, socket: Socket): void {
    session.setLocalWindowSize(receiveWindow)
    session.on('error', (error) => this.#log.debug(`session error: ${error.message}`))
    const limits = {
      pace: this.#pace,
      pieces: 'encrypted' in socket ? piecesOverTls : 1,
      now: monotonicMs,
    }
    const connection = new Http2Connection(session, socket, this.#config, limits, {
      busy: () => {
        this.#busy.add(connection)
        this.#wheel.wake()
      },
      dead: (peer, reason) => this.#tell(peer, reason),
    })
    this.#sessions.set(session, connection)
    session.on('close', () => {
      this.#sessions.delete(session)
      this.#busy.delete(connection)
    })
  }

  /** Logs why a connection was ended; of many connections from one address, a few lines. */
  #tell(peer: string, reason: string): void {
    const told = this.#lines.take(`${peer}|${reason}`, monotonicMs())
    if (told === 'no') return
    this.#log.warn(`connection from ${peer} ended: ${reason}${told === 'last' ? '; more of this is not logged for ten seconds' : ''}`)
  }

  /** Charges everything under way with some milliseconds. Returns whether anything is. */
  #charge(ms: number): boolean {
    for (const connection of this.#busy) if (!connection.flow.charge(ms)) this.#busy.delete(connection)
    for (const stream of this.#reading) stream.chargeReading(ms)
    return this.#busy.size + this.#reading.size > 0
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', (error) => this.#log.debug(`stream error: ${error.message}`))
    // It may be over before it is told of.
    const connection = this.#sessions.get(stream.session as ServerHttp2Session)
    if (!connection || stream.destroyed || stream.closed) return stream.close()
    const method = this.#methods.get(headers[':path'] ?? '')
    if (headers[':method'] !== 'POST' || !String(headers['content-type'] ?? '').startsWith('application/grpc')) {
      stream.respond({ ':status': headers[':method'] === 'POST' ? 415 : 405 }, { endStream: true })
      return
    }
    if (!method) {
      stream.respond(trailersOf(12, `unknown method ${headers[':path']?.slice(0, 200)}`), { endStream: true })
      return
    }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    method(
      new Http2GrpcStream(stream, {
        peer: connection.peer,
        flow: connection.flow,
        budget: connection.budget,
        buffers: this.#buffers,
        limit: this.#features.MESH_GPRC_MAXRECVMSGSIZE,
        arrival: arrivalLimits,
        reading: {
          add: (reading) => {
            this.#reading.add(reading)
            this.#wheel.wake()
          },
          delete: (reading) => this.#reading.delete(reading),
        },
      }),
    )
  }
}
