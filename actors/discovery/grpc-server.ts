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
import type { TLSSocket } from 'node:tls'
import type { SecureServer, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { Features } from '../../src/config/features.ts'
import { BadFrame, FrameBudget, FrameBuffers, FrameReader } from '../../src/xds/session/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import type { ScopedLogger } from '../runtime/logger.ts'
import { after, every } from '../runtime/timers.ts'
import { connectionShare, descriptorLimit, limitConnections } from './connection-limit.ts'

/** A stream as the services see it. */
export interface GrpcStream {
  /** Address of the other side, for messages. */
  readonly peer: string
  onMessage(listen: (message: Buffer) => void): void
  /** The client has said all it will say. */
  onEnd(listen: () => void): void
  onClose(listen: () => void): void
  /** Writes buffers; `done` hears when they have left, or that they could not. */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void
  /** Ends the stream with a gRPC status. */
  end(code: number, message: string): void
  /** Ends the stream with a gRPC status, and the connection as soon as its other streams have ended; new streams need a new connection. */
  release(code: number, message: string): void
  /** Resets the stream: for a peer that does not read. */
  abort(): void
}

/** A service method by its path. */
export type Methods = Readonly<Record<string, (stream: GrpcStream) => void>>

/**
 * Bytes of requests that a connection, and a stream, may send before the server has taken them. What has come is worked off at
 * once, and in the smallest frames this many bytes take as long as 64 MiB in large ones: 50 ms.
 */
const receiveWindow = 65_535
const cancel = 8
const noError = 0
/** How long the other half of a stream may stay open after its status was sent, in milliseconds. */
const closeMs = 1000

/** The server of one writer, in plain text and over TLS. All writers listen on the same ports; the kernel spreads connections over them. */
export class GrpcServer {
  readonly #config: XdsWriterConfig
  readonly #log: ScopedLogger
  readonly #methods: Methods
  readonly #limit: number
  readonly #servers: { readonly server: Http2Server | Http2SecureServer; readonly host: string; readonly port: number }[] = []
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #buffers = new FrameBuffers()
  readonly #budgets = new WeakMap<ServerHttp2Session, FrameBudget>()
  #opened: Promise<void> | undefined

  /** `refused` hears of connections that are closed at once because there are too many. */
  constructor(config: XdsWriterConfig, features: Features, log: ScopedLogger, methods: Methods, refused: () => void) {
    this.#config = config
    this.#log = log
    this.#methods = methods
    this.#limit = features.MESH_GPRC_MAXRECVMSGSIZE
    const options = {
      settings: { maxConcurrentStreams: features.MESH_GPRC_MAXSTREAMS, initialWindowSize: receiveWindow, maxHeaderListSize: 16_384 },
      maxSessionMemory: 64,
      maxSessionInvalidFrames: 100,
      streamResetBurst: 1000,
      streamResetRate: 33,
      unknownProtocolTimeout: 10_000,
    }
    this.#serve(createServer(options), config)
    if (config.secure) this.#serve(this.#secureServer(config.secure, options), config.secure)
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
          new Promise<void>((resolve) => server.listen({ host: host || undefined, port, reusePort: this.#config.writers > 1 }, resolve)),
      ),
    ).then(() => undefined)
    return this.#opened
  }

  #serve(server: Http2Server | Http2SecureServer, { host, port }: { host: string; port: number }): void {
    server.on('session', (session: ServerHttp2Session) => this.#session(session))
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
      this.#log.warn(`connection from ${socket.remoteAddress} ended: client certificate refused: ${socket.authorizationError}`)
      socket.destroy()
    })
    server.on('tlsClientError', (error: Error) => this.#log.debug(`TLS handshake failed: ${error.message}`))
    return server
  }

  /** Stops listening and ends connections, those that do not end by themselves after a moment. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#servers.map(({ server }) => new Promise<void>((resolve) => server.close(() => resolve()))))
    if (this.#servers.every(({ server }) => !server.listening) && this.#sessions.size === 0) return
    for (const session of this.#sessions) session.close()
    const hard = after(1000, () => {
      for (const session of this.#sessions) session.destroy()
    })
    await closed
    hard.cancel()
  }

  #session(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    this.#budgets.set(session, new FrameBudget(monotonicMs()))
    session.setLocalWindowSize(receiveWindow)
    session.on('error', (error) => this.#log.debug(`session error: ${error.message}`))
    const { keepaliveInterval, keepaliveTimeout, maxConnectionAge } = this.#config
    const ping = every(Math.max(1000, keepaliveInterval), () => this.#ping(session, keepaliveTimeout)).unref()
    const age = after(maxConnectionAge, () => this.#retire(session)).unref()
    session.on('close', () => {
      this.#sessions.delete(session)
      ping.cancel()
      age.cancel()
    })
  }

  /** Asks the peer for a sign of life; a peer that gives none is cut off. */
  #ping(session: ServerHttp2Session, timeout: number): void {
    if (session.destroyed || session.closed) return
    const dead = after(timeout, () => session.destroy()).unref()
    const sent = session.ping((error) => {
      dead.cancel()
      if (error && !session.destroyed) session.destroy()
    })
    if (!sent) {
      dead.cancel()
      session.destroy()
    }
  }

  /** Asks the peer to go elsewhere, and cuts it off after ten seconds. */
  #retire(session: ServerHttp2Session): void {
    session.goaway()
    after(10_000, () => session.destroy()).unref()
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', (error) => this.#log.debug(`stream error: ${error.message}`))
    const method = this.#methods[headers[':path'] ?? '']
    if (headers[':method'] !== 'POST' || !String(headers['content-type'] ?? '').startsWith('application/grpc')) {
      stream.respond({ ':status': headers[':method'] === 'POST' ? 415 : 405 }, { endStream: true })
      return
    }
    if (!method) {
      stream.respond(trailersOf(12, `unknown method ${headers[':path']}`), { endStream: true })
      return
    }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    method(this.#wrap(stream))
  }

  #wrap(stream: ServerHttp2Stream): GrpcStream {
    const reader = new FrameReader(this.#limit, this.#buffers)
    const budget = this.#budgets.get(stream.session as ServerHttp2Session)
    let trailers = trailersOf(0, '')
    let ended = false
    stream.on('wantTrailers', () => {
      const { 'grpc-status': code, 'grpc-message': message } = trailers
      stream.sendTrailers({ 'grpc-status': code, ...(message ? { 'grpc-message': message } : {}) })
      // A client that has nothing more to say closes its half itself; one that does not is not waited for.
      after(closeMs, () => stream.close(noError)).unref()
    })
    const end = (code: number, message: string) => {
      if (ended || stream.destroyed) return
      ended = true
      trailers = trailersOf(code, message)
      stream.end()
    }
    return {
      peer: stream.session?.socket.remoteAddress ?? '',
      onMessage: (listen) => {
        stream.on('data', (bytes: Buffer) => {
          if (ended) return
          const wait = budget?.spend(bytes.length, monotonicMs) ?? 0
          if (wait > 0) {
            stream.pause()
            after(wait, () => stream.resume()).unref()
          }
          try {
            reader.take(bytes, listen)
          } catch (error) {
            if (!(error instanceof BadFrame)) throw error
            end(error.status, error.message)
          }
        })
      },
      onEnd: (listen) => stream.on('end', listen),
      onClose: (listen) => stream.on('close', listen),
      write: (parts, done) => {
        if (stream.destroyed || ended) return done(true)
        stream.cork()
        for (const [index, part] of parts.entries()) {
          if (index === parts.length - 1) stream.write(part, (error) => done(error != null))
          else stream.write(part)
        }
        stream.uncork()
      },
      end,
      release: (code, message) => {
        stream.session?.close()
        end(code, message)
      },
      abort: () => stream.close(cancel),
    }
  }
}

function trailersOf(code: number, message: string) {
  return {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    ...(message ? { 'grpc-message': percentEncoded(message) } : {}),
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
