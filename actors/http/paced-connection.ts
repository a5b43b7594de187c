/**
 * Connections of HTTP/1.1 servers that answer one request at a time. Node parses all requests of what it has read, and starts to answer each
 * of them; a client may send thousands in one piece. Here the parser gets the bytes of the next request when the one before is answered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { clientKey } from '../../src/model/client-address.ts'
import type { Asker, RequestTurns } from './request-turns.ts'

/** The end of a request's head. A head whose lines end otherwise is refused by the parser. */
const headEnd = Buffer.from('\r\n\r\n')
/** The maximum size of what the parser gets at a time, in bytes: a body may consist of chunks of one byte, each a call. */
const pieceBytes = 1024

/** The first bytes of a connection of HTTP/2 (RFC 9113, 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** What a connection needs of its server. */
export interface ConnectionParts {
  /** Decides when the parser gets the next piece. */
  readonly turns: RequestTurns
  /** The time without progress after which a response that the client does not read ends the connection, in milliseconds. */
  readonly standstillMs: number
  /** Called when the number of bytes that wait to be sent has changed, with the number. */
  readonly unsent: (connection: PacedConnection, bytes: number) => void
  /** Takes connections of HTTP/2, of which the given bytes were read. Without it, they are refused as unreadable requests. */
  readonly http2?: ((socket: Socket, first: Buffer) => void) | undefined
}

/** Stands between a socket and the server. The server must report its requests with {@link answering}. */
export class PacedConnection extends Duplex implements Asker {
  readonly client: string
  readonly #socket: Socket
  readonly #parts: ConnectionParts
  /** Received bytes that the parser does not have yet. While there are any, the socket is not read. */
  #rest: Buffer | undefined
  #isEnded = false
  /** Whether the stream asks for bytes. */
  #isWanted = false
  /** Whether the connection waits for its turn. */
  #isAsking = false
  #isNew = true
  #isGivenAway = false
  /** Whether the first bytes may still be those of HTTP/2. */
  #mayBeHttp2: boolean
  /** Removes the listeners from the socket. */
  readonly #release: () => void
  readonly #requests = new Set<IncomingMessage>()

  constructor(socket: Socket, parts: ConnectionParts) {
    super({ decodeStrings: false, writableHighWaterMark: socket.writableHighWaterMark })
    this.client = clientKey(socket.remoteAddress)
    this.#socket = socket
    this.#parts = parts
    this.#mayBeHttp2 = parts.http2 !== undefined
    const received = (bytes: Buffer) => {
      this.#rest = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes
      if (!this.#isPassedOn(this.#rest)) this.#ask()
    }
    const ended = () => {
      this.#isEnded = true
      this.#mayBeHttp2 = false
      this.#ask()
    }
    const failed = (error: Error) => void this.destroy(error)
    const closed = () => void this.destroy()
    const timedOut = () => void this.emit('timeout')
    socket.on('data', received).on('end', ended).on('error', failed).on('close', closed).on('timeout', timedOut)
    this.#release = () => socket.off('data', received).off('end', ended).off('error', failed).off('close', closed).off('timeout', timedOut)
  }

  get isNew(): boolean {
    return this.#isNew
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress
  }

  get localPort(): number | undefined {
    return this.#socket.localPort
  }

  /** As `Socket.setTimeout`: the connection emits `timeout` after this many milliseconds without traffic. */
  setTimeout(ms: number): this {
    this.#socket.setTimeout(ms)
    return this
  }

  /** As `Socket.destroySoon`: ends the connection when everything is sent. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  /**
   * Records that a request is being answered until its response is closed. The connection ends when the request is not complete by then: the
   * rest of its body is not worth reading.
   */
  answering(request: IncomingMessage, response: ServerResponse): void {
    this.#isNew = false
    this.#requests.add(request)
    response.once('close', () => {
      this.#requests.delete(request)
      if (request.complete) this.#ask()
      else this.destroySoon()
    })
  }

  override _read(): void {
    this.#isWanted = true
    this.#ask()
  }

  override _write(chunk: string | Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(done, (sent) => this.#socket.write(chunk, encoding, sent))
  }

  override _writev(chunks: { chunk: string | Buffer; encoding: BufferEncoding }[], done: (error?: Error | null) => void): void {
    this.#send(done, (sent) => {
      this.#socket.cork()
      for (const [index, { chunk, encoding }] of chunks.entries()) this.#socket.write(chunk, encoding, index === chunks.length - 1 ? sent : undefined)
      this.#socket.uncork()
    })
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#parts.turns.leave(this)
    this.#rest = undefined
    if (!this.#isGivenAway) this.#socket.destroy()
    this.#parts.unsent(this, 0)
    done(error)
  }

  /** Gives a connection of HTTP/2 away. Decides by the first bytes, at most as many as the preface has. */
  #isPassedOn(seen: Buffer): boolean {
    if (!this.#mayBeHttp2) return false
    const length = Math.min(seen.length, preface.length)
    this.#mayBeHttp2 = seen.subarray(0, length).equals(preface.subarray(0, length))
    if (!this.#mayBeHttp2 || length < preface.length) return false
    this.#isGivenAway = true
    this.#release()
    this.#socket.setTimeout(0)
    this.#socket.pause()
    this.destroy()
    this.#parts.http2?.(this.#socket, seen)
    return true
  }

  /** Whether the parser may get more: no request is being answered, or one whose body is not complete. */
  #isOpen(): boolean {
    const [request] = this.#requests
    return request === undefined || (this.#requests.size === 1 && !request.complete)
  }

  /** Gives the parser the next piece, at most one request. Called when it is the turn of this connection. */
  advance(): void {
    this.#isAsking = false
    const piece = this.#rest && this.#mayAdvance() ? this.#nextPiece(this.#rest) : undefined
    if (piece) {
      this.#isWanted = false
      this.push(piece)
    }
    this.#ask()
  }

  /** Asks for a turn if the parser may get more. While bytes wait, the socket is not read. */
  #ask(): void {
    if (this.destroyed) return
    if (this.#rest && !this.#mayBeHttp2) this.#socket.pause()
    else if (this.#socket.isPaused()) this.#socket.resume()
    if (this.#rest && !this.#isAsking && this.#mayAdvance()) {
      this.#isAsking = true
      this.#parts.turns.ask(this)
    }
    if (!this.#rest && this.#isEnded) this.push(null)
  }

  #mayAdvance(): boolean {
    return this.#isWanted && !this.#mayBeHttp2 && this.#isOpen()
  }

  #nextPiece(rest: Buffer): Buffer {
    const at = rest.indexOf(headEnd)
    const end = Math.min(at < 0 ? rest.length : at + headEnd.length, pieceBytes)
    this.#rest = end < rest.length ? rest.subarray(end) : undefined
    return rest.subarray(0, end)
  }

  #send(done: (error?: Error | null) => void, write: (sent: (error?: Error | null) => void) => void): void {
    write((error) => {
      this.#socket.setTimeout(0)
      this.#parts.unsent(this, 0)
      done(error)
    })
    const { writableLength: unsent } = this.#socket
    if (unsent === 0) return
    this.#socket.setTimeout(this.#parts.standstillMs)
    this.#parts.unsent(this, unsent)
  }
}
