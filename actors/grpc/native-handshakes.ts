/** Native handshakes of known addresses: TLS sockets that read and write the descriptor themselves (docs/xds-protocol.md, H6). */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { FairQueue } from '../../src/model/fair-queue.ts'
import { costlyMs, NativeRight, unfinishedMs } from '../../src/transport/handshakes.ts'
import { handshakeBytes } from '../http/handshake-stream.ts'
import { monotonicMs, threadCpuMs } from '../runtime/clock.ts'

/** The maximum number of native handshakes at a time; how long sockets wait for room, and how long while no handshake ends, in milliseconds. */
const bounds = { together: 2, waitMs: 1500, stallMs: 250 }
/**
 * Bytes of a native handshake up to which it is ordinary whatever it cost: a chain of RSA-2048 with a post-quantum key share is 3.5 KB, and
 * the costliest 4 KB take 40 ms.
 */
const ordinaryBytes = 4096

/** What native handshakes need of the gate. */
export interface NativeParts {
  /** Makes the server begin a handshake. */
  begin(socket: Socket): void
  /** Called with a socket that waited, when there is room. Its address may have lost its right meanwhile. */
  admit(socket: Socket): void
  /** Takes over a socket for which there is no room. It must not come back. */
  measure(socket: Socket): void
  /** Called when a handshake is ended because it took too long. */
  timedOut(): void
  /** Called with what the operator should know of a client. */
  say(address: string, what: string): void
}

/** A handshake under way. */
interface NativeHandshake {
  readonly socket: Socket
  readonly address: string
  readonly since: number
}

/**
 * Does native handshakes, two at a time and one of an address; addresses that wait for them take turns. Clients that hold theirs delay nobody: while none ends, the
 * others are measured. Native handshakes make all later bytes of the connection cheaper and bound nothing, so an address whose handshake
 * was not an ordinary one has no further ones ({@link NativeRight}).
 */
export class NativeHandshakes {
  readonly #parts: NativeParts
  readonly #right = new NativeRight()
  /** By the remote end. */
  readonly #underWay = new Map<string, NativeHandshake>()
  /** The sockets that wait, with the time since when, and whose turn it is. */
  readonly #waiting = new Map<Socket, number>()
  readonly #turns = new FairQueue<Socket>({ calls: Number.POSITIVE_INFINITY, bytes: 0 })
  /** When a handshake last began or ended. */
  #movedAt = 0
  /** CPU time of the thread when its event loop last began a turn, or a handshake was judged; taken while any is under way. */
  #markedCpuMs = 0
  #isMarking = false

  constructor(parts: NativeParts) {
    this.#parts = parts
  }

  /** The number of sockets whose handshake is unfinished. */
  get size(): number {
    return this.#underWay.size + this.#waiting.size
  }

  /** Whether a known address may have native handshakes. */
  isAllowed(address: string): boolean {
    return this.#right.has(address, monotonicMs())
  }

  /** Begins with the handshake of a socket, or lets it wait for room. */
  take(socket: Socket): void {
    const now = monotonicMs()
    const { remoteAddress: address = '' } = socket
    if (this.#hasRoom(address)) return this.#begin(socket)
    if (this.#isStalled(now)) return this.#parts.measure(socket)
    this.#waiting.set(socket, now)
    this.#turns.add(address, socket, 0)
    socket.once('error', () => undefined).once('close', () => this.#leave(socket, address))
  }

  /** A handshake of the server is done. No effect if it was not a native one. */
  secured(socket: TLSSocket): void {
    this.#ended(endOf(socket), true)
  }

  /** Ends the handshakes that take too long, and gives away the sockets that have waited too long. */
  checkAges(): void {
    const now = monotonicMs()
    for (const [socket, since] of this.#waiting) {
      if (now - since < bounds.waitMs && !this.#isStalled(now)) continue
      this.#leave(socket, socket.remoteAddress ?? '')
      this.#parts.measure(socket)
    }
    for (const { socket, address, since } of this.#underWay.values()) {
      if (now - since < unfinishedMs) continue
      this.#right.withdraw(address, now)
      this.#parts.timedOut()
      socket.destroy()
    }
  }

  /** Ends all unfinished handshakes. */
  close(): void {
    for (const socket of this.#waiting.keys()) socket.destroy()
    for (const { socket } of this.#underWay.values()) socket.destroy()
  }

  /** One chain of an address may block the thread for seconds, before the second one is judged by it. */
  #hasRoom(address: string): boolean {
    return this.#underWay.size < bounds.together && ![...this.#underWay.values()].some((handshake) => handshake.address === address)
  }

  /** Whether none of the handshakes under way has ended for a while. */
  #isStalled(now: number): boolean {
    return now - this.#movedAt >= bounds.stallMs
  }

  #leave(socket: Socket, address: string): void {
    if (this.#waiting.delete(socket)) this.#turns.remove(address, socket)
  }

  #begin(socket: Socket): void {
    const end = endOf(socket)
    this.#movedAt = monotonicMs()
    this.#underWay.set(end, { socket, address: socket.remoteAddress ?? '', since: this.#movedAt })
    socket.once('close', () => this.#ended(end, false))
    this.#mark()
    this.#parts.begin(socket)
  }

  /** Takes the CPU time of the thread now and at each turn of its event loop, without keeping it from waiting. */
  #mark(): void {
    this.#markedCpuMs = threadCpuMs()
    if (this.#isMarking) return
    this.#isMarking = true
    setImmediate(() => {
      this.#isMarking = false
      if (this.#underWay.size > 0) this.#mark()
    }).unref()
  }

  /** Ends a handshake, whether it is done or its client has gone, and begins with the next ones. */
  #ended(end: string, isDone: boolean): void {
    const handshake = this.#underWay.get(end)
    if (!handshake) return
    this.#underWay.delete(end)
    this.#movedAt = monotonicMs()
    this.#judge(handshake, isDone)
    for (;;) {
      const socket = this.#turns.take((address) => this.#hasRoom(address))
      if (!socket) return
      this.#waiting.delete(socket)
      this.#parts.admit(socket)
    }
  }

  /**
   * Withdraws the right to native handshakes from an address, if a handshake was not an ordinary one: it took more bytes than any needs, or
   * more than {@link ordinaryBytes} and was costly or never done. Its cost is at most the time that the thread used since it was marked. The
   * bytes may include the first request, so the address stays known.
   */
  #judge({ socket: { bytesRead }, address }: NativeHandshake, isDone: boolean): void {
    const cpuMs = threadCpuMs()
    const costMs = cpuMs - this.#markedCpuMs
    this.#markedCpuMs = cpuMs
    if (bytesRead <= ordinaryBytes || (bytesRead <= handshakeBytes && isDone && costMs < costlyMs)) return
    this.#right.withdraw(address, monotonicMs())
    this.#parts.say(address, `sent ${bytesRead} bytes until the TLS handshake ended: the bytes of further ones from there are bounded`)
  }
}

/** Identifies a connection of the listener by its remote end. */
const endOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string => `${remoteAddress} ${remotePort}`
