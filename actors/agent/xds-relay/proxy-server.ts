/** The Unix socket on which the proxy requests its configuration: Envoy's aggregated discovery service in plaintext. */
import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { XdsRelayConfig } from '../../../protocols/messages/xds-relay.ts'
import { status } from '../../../src/model/status-codes.ts'
import { trailersOf } from '../../grpc/grpc-stream.ts'
import { LocalSocket } from '../../http/unix-socket.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after } from '../../runtime/timers.ts'
import { ProxyStream } from './proxy-stream.ts'

/** Methods of `envoy.service.discovery.v3.AggregatedDiscoveryService`. */
export const methods = { sotw: 'StreamAggregatedResources', delta: 'DeltaAggregatedResources' } as const
const servicePath = '/envoy.service.discovery.v3.AggregatedDiscoveryService/'

/**
 * The maximum numbers of connections and of streams on each, the flow-control window for requests in bytes, and the maximum memory of a
 * session in MiB, which must hold a whole stored configuration.
 */
const bounds = { connections: 16, streams: 16, window: 262_144, sessionMib: 128 }
/** How long connections may take to close when the server is closed, in milliseconds. */
const closeMs = 1000

/** Accepts streams and calls `open` for each. */
export class ProxyServer {
  readonly #log: ScopedLogger
  readonly #server: Http2Server
  readonly #socket: LocalSocket
  readonly #sessions = new Set<ServerHttp2Session>()

  constructor(
    { socket: path, allowVolumes }: Pick<XdsRelayConfig, 'socket' | 'allowVolumes'>,
    log: ScopedLogger,
    open: (stream: ProxyStream) => void,
  ) {
    this.#log = log
    this.#server = createServer({
      settings: { maxConcurrentStreams: bounds.streams, initialWindowSize: bounds.window, maxHeaderListSize: 16_384 },
      maxSessionMemory: bounds.sessionMib,
      maxSessionInvalidFrames: 100,
      streamResetBurst: 100,
      streamResetRate: 10,
      unknownProtocolTimeout: 10_000,
    })
    this.#server.maxConnections = bounds.connections
    const directory = { isOwn: false, allowVolumes }
    this.#socket = new LocalSocket(this.#server, { path, directory, warn: (line) => log.warn(`socket of the proxy: ${line}`) })
    this.#server.on('session', (session) => this.#keep(session))
    this.#server.on('sessionError', (error: Error) => this.#log.debug(`connection of the proxy: ${error.message}`))
    this.#server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#take(stream, headers, open))
  }

  /** Starts to listen. Rejects with an Error that names the path when it cannot listen on it. */
  open(): Promise<void> {
    return this.#socket.open()
  }

  /** Closes connections and stops listening, which removes the socket. */
  async close(): Promise<void> {
    this.#socket.close()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const session of this.#sessions) session.close()
    const hard = after(closeMs, () => {
      for (const session of this.#sessions) session.destroy()
    })
    await closed
    hard.cancel()
  }

  #keep(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    session.on('error', (error) => this.#log.debug(`connection of the proxy: ${error.message}`))
    session.on('close', () => this.#sessions.delete(session))
  }

  #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, open: (stream: ProxyStream) => void): void {
    stream.on('error', (error) => this.#log.debug(`stream of the proxy: ${error.message}`))
    // The stream may have been closed before this event.
    if (stream.destroyed || stream.closed) return stream.close()
    if (headers[':method'] !== 'POST' || !String(headers['content-type'] ?? '').startsWith('application/grpc'))
      return stream.respond({ ':status': headers[':method'] === 'POST' ? 415 : 405 }, { endStream: true })
    const path = headers[':path'] ?? ''
    const method = path.startsWith(servicePath) ? path.slice(servicePath.length) : ''
    if (method !== methods.sotw && method !== methods.delta)
      return stream.respond(trailersOf(status.unimplemented, `unknown method ${path.slice(0, 200)}`), { endStream: true })
    open(new ProxyStream(stream, method === methods.delta))
  }
}

/** Returns the path of a method. */
export const pathOf = (isDelta: boolean): string => servicePath + (isDelta ? methods.delta : methods.sotw)
