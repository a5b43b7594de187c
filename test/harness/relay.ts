/** Both ends of the agent's relay: a proxy that connects to its socket, and a discovery server that the test controls. */
import { readFileSync } from 'node:fs'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { connect as connectSocket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { freePort } from '../../bench/ports.ts'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { FrameBuffers, FrameReader, messageFrame } from '../../src/xds/stream/frames.ts'

const bounds = { maxSessionMemory: 1000 }
const servicePath = '/envoy.service.discovery.v3.AggregatedDiscoveryService/'

/** Encodes a SotW request. */
export const sotw = (request: MessageInitShape<typeof DiscoveryRequestSchema>): Buffer =>
  Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request)))
/** Encodes a delta request. */
export const delta = (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): Buffer =>
  Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)))

/** A stream of a proxy. */
export class RelayClient {
  readonly session: ClientHttp2Session
  readonly stream: ClientHttp2Stream
  /** The received bytes. */
  readonly chunks: Buffer[] = []
  readonly messages: Buffer[] = []
  /** `<code> <message>` when the stream has ended with a status, `reset <code>` when without. */
  ended: string | undefined

  /** `reads` is false for a client that does not read responses. */
  constructor(socket: string, { isDelta = false, reads = true, method }: { isDelta?: boolean; reads?: boolean; method?: string } = {}) {
    this.session = connect('http://agent', { createConnection: () => connectSocket(socket), ...bounds })
    this.session.on('error', () => undefined)
    const name = method ?? (isDelta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources')
    this.stream = this.session.request({ ':method': 'POST', ':path': servicePath + name, 'content-type': 'application/grpc', te: 'trailers' })
    this.stream.on('error', () => undefined)
    const reader = new FrameReader(500_000_000, new FrameBuffers())
    if (reads)
      this.stream.on('data', (bytes: Buffer) => {
        this.chunks.push(bytes)
        reader.take(bytes, (message) => this.messages.push(Buffer.from(message)))
      })
    const readStatus = (headers: IncomingHttpHeaders) => {
      if (headers['grpc-status'] !== undefined) this.ended = `${headers['grpc-status']} ${headers['grpc-message'] ?? ''}`.trim()
    }
    this.stream.on('response', readStatus)
    this.stream.on('trailers', readStatus)
    this.stream.on('close', () => (this.ended ??= `reset ${this.stream.rstCode}`))
  }

  send(message: Uint8Array): void {
    this.stream.write(messageFrame(message))
  }

  close(): void {
    this.session.destroy()
  }
}

/** A stream on the server's side. */
export interface DiscoveryCall {
  readonly headers: IncomingHttpHeaders
  readonly stream: ServerHttp2Stream
  readonly messages: Buffer[]
  /** The common name of the client certificate. */
  readonly presented: string | undefined
  /** Sends a message. */
  send(message: Uint8Array): void
  /** Ends the stream with a status. */
  end(code: number, message?: string): void
  isClosed: boolean
}

/** A discovery server. */
export class FakeDiscovery {
  #server: Http2Server | Http2SecureServer | undefined
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #tls: { cert: string; key: string } | undefined
  readonly calls: DiscoveryCall[] = []
  port = 0
  /** Handles each call. Without it the server answers with response headers only. */
  onCall: ((call: DiscoveryCall) => void) | undefined

  /** `tls` are the files of the certificate and its key. Without it the server does not use TLS. */
  constructor(tls?: { cert: string; key: string }) {
    this.#tls = tls
  }

  /** Starts to listen, after a stop on the same port. */
  async start(): Promise<this> {
    const tls = this.#tls && {
      cert: readFileSync(this.#tls.cert),
      key: readFileSync(this.#tls.key),
      requestCert: true,
      rejectUnauthorized: false,
      ...bounds,
    }
    const server = tls ? createSecureServer(tls) : createServer(bounds)
    this.#server = server
    server.on('session', (session: ServerHttp2Session) => {
      this.#sessions.add(session)
      session.on('error', () => undefined)
      session.on('close', () => this.#sessions.delete(session))
    })
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#take(stream, headers))
    server.on('error', () => undefined)
    // A port of the range from which the kernel gives none to connections: nobody takes it between a stop and the next start.
    this.port ||= await freePort()
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', () => resolve()))
    return this
  }

  /** Closes all connections and stops listening. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    this.cut()
    await closed
  }

  /** Closes all connections. */
  cut(): void {
    for (const session of this.#sessions) session.destroy()
  }

  /** Sends GOAWAY to all clients. */
  goaway(): void {
    for (const session of this.#sessions) session.goaway()
  }

  get last(): DiscoveryCall | undefined {
    return this.calls.at(-1)
  }

  #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => undefined)
    const messages: Buffer[] = []
    let trailers: Record<string, string> = {}
    const socket = stream.session?.socket as Partial<TLSSocket> | undefined
    const presented = socket?.encrypted ? socket.getPeerCertificate?.().subject?.CN : undefined
    const call: DiscoveryCall = {
      headers,
      stream,
      messages,
      presented: presented === undefined ? undefined : String(presented),
      isClosed: false,
      send: (message) => stream.write(messageFrame(message)),
      end(code, message = '') {
        trailers = { 'grpc-status': String(code), 'grpc-message': message }
        if (stream.headersSent) stream.end()
        else stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true })
      },
    }
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.on('close', () => {
      call.isClosed = true
    })
    const reader = new FrameReader(500_000_000, new FrameBuffers())
    stream.on('data', (bytes: Buffer) => reader.take(bytes, (message) => messages.push(Buffer.from(message))))
    this.calls.push(call)
    if (this.onCall) this.onCall(call)
    else stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  }
}
