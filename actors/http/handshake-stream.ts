/** Bounds what a TLS peer may send before its handshake is done (docs/xds-protocol.md, H1). */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/**
 * Maximum number of bytes that a peer may send before its handshake is done. OpenSSL verifies a certificate chain in one call, which no
 * callback can interrupt: 16 KB of it cost at most 0.15 s of CPU, the 100 KB that OpenSSL accepts more than a second. Four RSA certificates
 * of 4096 bits with a key share of X25519MLKEM768 are 9 KB.
 */
export const handshakeBytes = 16_384

/** Settings of {@link HandshakeStream}. */
export interface HandshakeStreamOptions {
  /** Maximum number of bytes before {@link HandshakeStream.settle}. Default: {@link handshakeBytes}. */
  readonly bytes?: number
  /**
   * Called when bytes of the handshake have arrived; they reach OpenSSL when {@link HandshakeStream.deliver} is called, now or later, and
   * no more is read before. By default they are delivered at once.
   */
  readonly arrived?: () => void
  /** Called when the peer has sent too much, before the stream fails. */
  readonly exceeded?: () => void
}

/**
 * The bytes between a socket and a TLS socket of either side: `tlsServer.emit('connection', new HandshakeStream(socket))`, or
 * `tls.connect({ socket: new HandshakeStream(socket), ... })`. A peer that sends too much before {@link settle} is called fails the stream
 * with an Error. The owner calls `settle` in the event `secureConnect` or `secureConnection`; then all bytes pass. Bytes that pass
 * through here cost half as much again as those of a TLS socket that reads and writes the descriptor itself.
 */
export class HandshakeStream extends Duplex {
  readonly #socket: Socket
  readonly #most: number
  readonly #arrived: () => void
  readonly #exceeded: () => void
  #settled = false
  /** Whether the TLS socket reads. */
  #isRead = false
  /** Bytes that have arrived and are not delivered. */
  #held: Buffer | undefined
  #received = 0
  #unanswered = 0
  readonly #listeners = {
    data: (chunk: Buffer) => this.#take(chunk),
    end: () => void this.push(null),
    error: (error: Error) => void this.destroy(error),
    close: () => void this.destroy(),
  }

  constructor(socket: Socket, options: HandshakeStreamOptions = {}) {
    super({ allowHalfOpen: socket.allowHalfOpen })
    this.#socket = socket
    this.#most = options.bytes ?? handshakeBytes
    this.#arrived = options.arrived ?? (() => this.deliver())
    this.#exceeded = options.exceeded ?? (() => undefined)
    socket.setNoDelay(true)
    socket.pause()
    for (const [event, listener] of Object.entries(this.#listeners)) socket.on(event, listener)
    // The TLS socket listens for errors once there is one.
    this.on('error', () => undefined)
  }

  /** Number of bytes that the peer has sent since it was last answered. */
  get unanswered(): number {
    return this.#unanswered
  }

  /**
   * Hands over the bytes that have arrived; OpenSSL has processed them when this returns, if the TLS socket reads already. Beyond the
   * maximum only bytes that follow the end of the handshake are handed over.
   */
  deliver(): void {
    const held = this.#held
    if (!held || !this.#isRead) return
    this.#held = undefined
    const handshake = held.subarray(0, this.#most - this.#received)
    this.#received += handshake.length
    this.push(handshake)
    if (this.destroyed) return
    if (handshake.length < held.length) {
      if (!this.#settled) {
        this.#exceeded()
        this.destroy(new Error(`the peer sent more than ${this.#most} bytes before the handshake was done`))
        return
      }
      this.push(held.subarray(handshake.length))
    }
    this.#socket.resume()
  }

  /** As {@link deliver}, as soon as there is a TLS socket: also before it reads by itself, which is after the current turn of JavaScript. */
  start(): void {
    this.#isRead = true
    this.read(0)
    this.deliver()
  }

  /** The handshake is done: further bytes are neither counted nor held. */
  settle(): void {
    this.#settled = true
  }

  /** Reads from the socket until bytes have arrived, before there is a TLS socket that reads. */
  listen(): void {
    this.#socket.resume()
  }

  /** Gives the socket back with the bytes that have arrived, before there is a TLS socket. The stream is not used any more. */
  release(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.#socket.off(event, listener)
    this.#socket.pause()
    if (this.#held) this.#socket.unshift(this.#held)
  }

  #take(chunk: Buffer): void {
    if (this.#settled) {
      if (!this.push(chunk)) this.#socket.pause()
      return
    }
    this.#unanswered += chunk.length
    this.#socket.pause()
    this.#held = this.#held ? Buffer.concat([this.#held, chunk]) : chunk
    this.#arrived()
  }

  override _read(): void {
    const first = !this.#isRead
    this.#isRead = true
    if (this.#held) {
      if (first) this.#arrived()
    } else this.#socket.resume()
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#unanswered = 0
    this.#socket.write(chunk, encoding, done)
  }

  override _writev(pieces: { chunk: Buffer; encoding: BufferEncoding }[], done: (error?: Error | null) => void): void {
    this.#unanswered = 0
    this.#socket.cork()
    for (const [index, { chunk, encoding }] of pieces.entries()) this.#socket.write(chunk, encoding, index === pieces.length - 1 ? done : undefined)
    this.#socket.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
