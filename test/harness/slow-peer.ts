/**
 * A client of the discovery service that controls how fast it reads its socket, how large its flow-control windows are and when it updates
 * them.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { create, toBinary } from '@bufbuild/protobuf'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { endHeaders, frame, frameType, requestHeaders } from './http2-frames.ts'
import { sidecarNode } from './xds-client.ts'

const magic = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const acknowledged = 1
const initialWindowSize = 4
const frameHead = 9
const windowUpdate = 8
/** The initial flow-control window of a connection, in bytes. */
const firstWindow = 65_535
const readEveryMs = 50

const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** The behaviour of a peer. */
export interface SlowPeerOptions {
  readonly port: number
  /** Whether to use TLS. The server's certificate is not verified. */
  readonly tls?: boolean
  /** The flow-control window of each stream, and that of the connection if it differs, in bytes. */
  readonly window: number
  readonly connectionWindow?: number
  /** The rate at which the peer reads its socket, in bytes per second. Windows are updated for the bytes read. */
  readonly bytesPerSecond: number
  /** The names of its proxies. Each has a stream of its own. */
  readonly names: readonly string[]
  /** Whether pings are answered only by {@link SlowPeer.answerPings}. */
  readonly holdsPings?: boolean
  /** The names of proxies that never update the windows of their streams and keep the received bytes. */
  readonly silent?: readonly string[]
}

/** A connection of proxies that subscribe to all clusters. */
export class SlowPeer {
  /** The bytes of messages that were read, by name. */
  readonly read = new Map<string, number>()
  /** The error codes of received RST_STREAM frames, by name. */
  readonly resets = new Map<string, number>()
  /** The number of received pings. */
  pings = 0
  /** Responses to pings that are held back until {@link answerPings}. Undefined: pings are answered at once. */
  readonly #pongs: Buffer[] | undefined
  /** Whether the server closed the connection. */
  closed = false
  bytesPerSecond: number
  readonly #options: SlowPeerOptions
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #rest: Buffer = Buffer.alloc(0)
  #readAt = performance.now()

  constructor(options: SlowPeerOptions) {
    this.#options = options
    this.bytesPerSecond = options.bytesPerSecond
    this.#pongs = options.holdsPings ? [] : undefined
    const address = { port: options.port, host: '127.0.0.1' }
    this.#socket = options.tls ? connectTls({ ...address, ALPNProtocols: ['h2'], rejectUnauthorized: false }) : connect(address)
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => (this.closed = true))
    const setting = Buffer.alloc(6)
    setting.writeUInt16BE(initialWindowSize, 0)
    setting.writeUInt32BE(options.window, 2)
    this.#socket.write(Buffer.concat([magic, frame(frameType.settings, 0, 0, setting)]))
    this.#grant(0, (options.connectionWindow ?? options.window) - firstWindow)
    for (const [index, name] of options.names.entries()) this.#subscribe(index * 2 + 1, name)
    // With a `readable` listener, unread bytes stay in the socket.
    this.#socket.on('readable', () => undefined)
    this.#timer = setInterval(() => this.#readSome(), readEveryMs)
  }

  /** Answers the held pings. */
  answerPings(): void {
    this.#socket.write(Buffer.concat(this.#pongs?.splice(0) ?? []))
  }

  end(): void {
    clearInterval(this.#timer)
    this.#socket.destroy()
  }

  #subscribe(stream: number, name: string): void {
    const { id, metadata } = sidecarNode('10.3.0.1', name, 'ns')
    const request = create(DiscoveryRequestSchema, { typeUrl: clusterType, node: { id, metadata: metadata as never } })
    this.#socket.write(frame(frameType.headers, endHeaders, stream, requestHeaders))
    this.#socket.write(frame(frameType.data, 0, stream, messageFrame(toBinary(DiscoveryRequestSchema, request))))
  }

  #grant(stream: number, bytes: number): void {
    if (bytes > 0) this.#socket.write(frame(windowUpdate, 0, stream, number(bytes)))
  }

  #readSome(): void {
    // Reads by elapsed time: on a busy machine the timer fires late, and the peer must still reach its rate.
    const now = performance.now()
    const ms = now - this.#readAt
    this.#readAt = now
    const most = Math.min(this.#socket.readableLength, Math.ceil((this.bytesPerSecond * ms) / 1000))
    const bytes = most > 0 ? (this.#socket.read(most) as Buffer | null) : null
    if (!bytes) return
    this.#rest = Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= frameHead) {
      const length = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < frameHead + length) return
      this.#take(this.#rest[3] as number, this.#rest[4] as number, this.#rest.readUInt32BE(5), this.#rest.subarray(frameHead, frameHead + length))
      this.#rest = this.#rest.subarray(frameHead + length)
    }
  }

  #take(kind: number, flags: number, stream: number, payload: Buffer): void {
    const name = this.#options.names[(stream - 1) / 2] ?? ''
    if (kind === frameType.settings && flags !== acknowledged) this.#socket.write(frame(frameType.settings, acknowledged, 0))
    else if (kind === frameType.ping && flags !== acknowledged) {
      this.pings++
      const pong = frame(frameType.ping, acknowledged, 0, payload)
      if (this.#pongs) this.#pongs.push(pong)
      else this.#socket.write(pong)
    } else if (kind === frameType.reset) {
      this.resets.set(name, payload.readUInt32BE(0))
      // After the reset, the connection's window is updated for the bytes that the stream held.
      if (this.#options.silent?.includes(name)) this.#grant(0, this.read.get(name) ?? 0)
    } else if (kind === frameType.data) {
      this.read.set(name, (this.read.get(name) ?? 0) + payload.length)
      if (this.#options.silent?.includes(name)) return
      this.#grant(stream, payload.length)
      this.#grant(0, payload.length)
    }
  }
}
