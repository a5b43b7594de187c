/**
 * Bounds what a TLS server can make its client do. OpenSSL builds and checks the whole chain of a server in one call, and goes on after
 * errors, so 100 KB of certificates cost a second during which the thread does nothing else.
 */
import { connect as connectTcp, isIP, type Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'

/** Runs work that may block the thread, and returns its result. */
export type Blocking = <Result>(work: () => Result) => Result

/**
 * Maximum number of bytes that a server may send before the handshake is done. A usual chain has 3 to 6 KB, one with 500 names some 12 KB;
 * the costliest chain of this size takes 0.2 s.
 */
const mostBytes = 32_768

/** Connects to a TLS server, of which no more than 32 KB are read before the handshake is done. Each step of it runs in `blocking`. */
export function connectBounded(to: TcpNetConnectOpts, options: ConnectionOptions, blocking: Blocking): TLSSocket {
  const { host = '' } = to
  const stream = new HandshakeStream(connectTcp(to), blocking)
  // An IP address is compared with the addresses in the certificate and is not sent as SNI (RFC 6066, section 3).
  const socket = connectTls({ ...(isIP(host) ? {} : { servername: host }), host, ...options, socket: stream })
  // A server could ask for a second handshake, which nothing bounds.
  socket.disableRenegotiation()
  socket.once('secureConnect', () => stream.handshakeDone())
  return socket
}

/** The bytes of a connection, which pass through JavaScript, so that they can be counted before OpenSSL reads them. */
class HandshakeStream extends Duplex {
  readonly #socket: Socket
  readonly #blocking: Blocking
  #received = 0
  #isDone = false

  constructor(socket: Socket, blocking: Blocking) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.#blocking = blocking
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /** Ends the bound. */
  handshakeDone(): void {
    this.#isDone = true
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(bytes: Buffer, _: string, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  #take(bytes: Buffer): void {
    if (this.#isDone) {
      if (!this.push(bytes)) this.#socket.pause()
      return
    }
    this.#received += bytes.length
    if (this.#received > mostBytes) this.destroy(new Error(`the server sent more than ${mostBytes} bytes before the end of the TLS handshake`))
    else if (!this.#blocking(() => this.push(bytes))) this.#socket.pause()
  }
}
