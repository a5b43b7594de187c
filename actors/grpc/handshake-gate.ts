/** The handshakes of a TLS server whose thread serves others (docs/xds-protocol.md, H1 to H6). */
import type { Http2SecureServer } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { clientKey } from '../../src/model/client-address.ts'
import { FairSlots } from '../../src/model/fair-slots.ts'
import { HandshakeOrder, KnownAddresses, StrangersShare, type WaitingBytes } from '../../src/push/pacing/handshakes.ts'
import { HandshakeStream, handshakeBytes } from '../http/handshake-stream.ts'
import { loopTimes, monotonicMs, threadCpuMs } from '../runtime/clock.ts'
import { Counter, Gauge, type Registry } from '../runtime/metrics.ts'
import { after, checkEvery, type Timer } from '../runtime/timers.ts'

/**
 * Bounds of unfinished handshakes: `open` connections of strangers, of which OpenSSL has begun with `begun`
 * (and with `begunOfNetwork` of one network within the last `begunMs`); `native` ones of known clients
 * without a bound of their bytes. Times in milliseconds: how long a handshake may take in all; how long known clients wait for a native
 * handshake while none ends.
 */
const bounds = { open: 1024, begun: 256, begunOfNetwork: 4, begunMs: 500, native: 2, unfinishedMs: 10_000, nativeWaitMs: 1000 }
/** How long no handshake is native after one that was costly, doubled by each further one, and the longest time, in milliseconds. */
const withoutNative = { firstMs: 600_000, longestMs: 86_400_000 }
/** How long strangers are served in one turn of the event loop, how often pauses of networks are looked at, and how often ages, in milliseconds. */
const intervals = { turnMs: 2, pauseMs: 50, ageMs: 500 }

/** Why a handshake was ended: the client sent too much, took too long, or had to make room for others. */
type Reason = 'size' | 'timeout' | 'room'

/** An unfinished handshake. */
class Handshake implements WaitingBytes {
  readonly network: string
  readonly since = monotonicMs()
  readonly stream: HandshakeStream
  /** When OpenSSL began. */
  begunAt: number | undefined
  isDone = false
  /** CPU milliseconds so far. */
  costMs = 0

  readonly socket: Socket
  readonly address: string
  readonly isKnown: boolean

  constructor(socket: Socket, address: string, isKnown: boolean, told: { arrived(handshake: Handshake): void; exceeded(): void }) {
    this.socket = socket
    this.address = address
    this.isKnown = isKnown
    this.network = clientKey(address)
    this.stream = new HandshakeStream(socket, { arrived: () => told.arrived(this), exceeded: () => told.exceeded() })
  }

  get unanswered(): number {
    return this.stream.unanswered
  }
}

/**
 * Accepts connections for a TLS server and hands them over. Handshakes of strangers pass through {@link HandshakeStream}, in the order of
 * {@link HandshakeOrder} and within {@link StrangersShare}. Those of known addresses wait for nobody: two at a time are done by a TLS socket
 * that reads the descriptor itself, which makes all later bytes cheaper and which bounds nothing; an address that sends more than
 * {@link handshakeBytes} in one of them is no longer known.
 */
export class HandshakeGate {
  /** Listens. Its connections include those whose handshake is unfinished. */
  readonly listener: Server
  readonly #server: Http2SecureServer
  readonly #known = new KnownAddresses()
  readonly #order = new HandshakeOrder()
  readonly #share = new StrangersShare(loopTimes())
  readonly #unfinished = new Set<Handshake>()
  /** Shares out the unfinished handshakes of strangers among their networks, and those of them that OpenSSL has begun with. */
  readonly #open = new FairSlots<Handshake>(bounds.open, bounds.open)
  readonly #begun = new FairSlots<Handshake>(bounds.begun, bounds.begun)
  /** The handshakes of strangers with bytes to process. */
  readonly #waiting = new Set<Handshake>()
  /** The native handshakes under way by the remote end, and the sockets that wait for one, with the time since when. */
  readonly #native = new Map<string, { readonly socket: Socket; readonly since: number }>()
  readonly #nativeWaiting = new Map<Socket, number>()
  /** When a native handshake last ended. */
  #nativeEndedAt = 0
  /** Number of costly native handshakes, and until when none is native for the last of them. */
  #costlyNative = 0
  #withoutNativeUntil = 0
  readonly #say: (address: string, what: string) => void
  readonly #metrics: { readonly refused: Counter<'reason'>; readonly seconds: Counter }
  #current: Handshake | undefined
  #isTurnDue = false
  #later: Timer | undefined
  #ages: Timer | undefined

  /** `say` is called with what the operator should know of a client, as often as it happens. */
  constructor(server: Http2SecureServer, registry: Registry, say: (address: string, what: string) => void) {
    this.#server = server
    this.#say = say
    this.listener = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#accept(socket))
    server.prependListener('secureConnection', (socket: TLSSocket) => this.#secured(socket))
    const registers = [registry]
    this.#metrics = {
      refused: new Counter({
        name: 'pilot_xds_refused_handshakes_total',
        help: 'TLS handshakes that the server ended, by reason',
        labelNames: ['reason'],
        registers,
      }),
      seconds: new Counter({
        name: 'pilot_xds_stranger_handshake_seconds_total',
        help: 'CPU seconds of TLS handshakes of unknown clients',
        registers,
      }),
    }
    const waiting = () => this.#waiting.size
    new Gauge({
      name: 'pilot_xds_waiting_handshakes',
      help: 'TLS handshakes of unknown clients with bytes that wait to be processed',
      registers,
      collect() {
        this.set({}, waiting())
      },
    })
  }

  /** A client at an address presented a valid credential: its next connections wait for nobody. */
  trust(address: string): void {
    this.#known.add(address, monotonicMs())
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** Whether a client at an address presented a valid credential. */
  isKnown(address: string): boolean {
    return this.#known.has(address, monotonicMs())
  }

  /** Ends all unfinished handshakes, and accepts no further connections. */
  close(done: () => void): void {
    this.listener.close(done)
    for (const { socket } of this.#unfinished) socket.destroy()
    for (const socket of this.#nativeWaiting.keys()) socket.destroy()
    for (const { socket } of this.#native.values()) socket.destroy()
  }

  #accept(socket: Socket): void {
    const address = socket.remoteAddress
    // Undefined when the client has gone again.
    if (address === undefined) return void socket.destroy()
    this.#ages ??= checkEvery(intervals.ageMs, () => this.#checkAges()).unref()
    if (this.#isNative(address)) this.#acceptNative(socket)
    else this.#admit(socket, address, this.isKnown(address))
  }

  #admit(socket: Socket, address: string, isKnown: boolean): void {
    const handshake = new Handshake(socket, address, isKnown, {
      arrived: (arrived) => this.#arrived(arrived),
      exceeded: () => {
        this.#metrics.refused.inc({ reason: 'size' satisfies Reason })
        this.#say(address, `ended: the client sent more than ${handshakeBytes} bytes before the TLS handshake was done`)
      },
    })
    this.#unfinished.add(handshake)
    if (!isKnown) this.#giveWay(this.#open.take(handshake.network, handshake))
    socket.once('close', () => this.#finish(handshake))
    handshake.stream.listen()
  }

  #arrived(handshake: Handshake): void {
    if (handshake.isKnown) return this.#step(handshake)
    this.#waiting.add(handshake)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    setImmediate(() => {
      this.#isTurnDue = false
      this.#turn()
    })
  }

  /** Processes bytes of strangers, for as long as a turn and their share allow. */
  #turn(): void {
    const from = monotonicMs()
    while (this.#waiting.size > 0) {
      if (!this.#share.isOpen(loopTimes())) return this.#pause(this.#share.waitMs)
      const next = this.#order.next(this.#eligible(), monotonicMs())
      if (!next) return this.#pause(intervals.pauseMs)
      if (next.begunAt === undefined && this.#isNative(next.address)) {
        this.#leaveNative(next)
        continue
      }
      this.#waiting.delete(next)
      if (next.begunAt === undefined) this.#giveWay(this.#begun.take(next.network, next))
      const began = monotonicMs()
      this.#step(next)
      const now = monotonicMs()
      this.#share.used(now - began)
      if (now - from > intervals.turnMs) return this.#schedule()
    }
  }

  /**
   * The handshakes that may go on. Of one network, only a few are begun with at a time: once one of its clients has presented a credential,
   * the others are native.
   */
  *#eligible(): Iterable<Handshake> {
    const since = monotonicMs() - bounds.begunMs
    const fresh = new Map<string, number>()
    for (const { network, begunAt, isKnown } of this.#unfinished)
      if (begunAt !== undefined && begunAt > since && !isKnown) fresh.set(network, (fresh.get(network) ?? 0) + 1)
    for (const handshake of this.#waiting)
      if (handshake.begunAt !== undefined || (fresh.get(handshake.network) ?? 0) < bounds.begunOfNetwork) yield handshake
  }

  /** Whether a handshake from an address is native, as soon as there is room. */
  #isNative(address: string): boolean {
    const now = monotonicMs()
    return this.#known.has(address, now) && now >= this.#withoutNativeUntil
  }

  /** Makes a handshake native that has not begun. */
  #leaveNative(handshake: Handshake): void {
    this.#finish(handshake)
    handshake.stream.release()
    this.#acceptNative(handshake.socket)
  }

  #acceptNative(socket: Socket): void {
    if (this.#native.size < bounds.native) return this.#doNatively(socket)
    this.#nativeWaiting.set(socket, monotonicMs())
    socket.once('error', () => undefined).once('close', () => this.#nativeWaiting.delete(socket))
  }

  #pause(ms: number): void {
    this.#later ??= after(Math.max(1, ms), () => {
      this.#later = undefined
      this.#turn()
    }).unref()
  }

  #giveWay(handshake: Handshake | undefined): void {
    if (handshake) this.#refuse(handshake, 'room')
  }

  #refuse(handshake: Handshake, reason: Reason): void {
    this.#metrics.refused.inc({ reason })
    handshake.socket.destroy()
    this.#finish(handshake)
  }

  /** Gives the waiting bytes of a handshake to OpenSSL, and measures. */
  #step(handshake: Handshake): void {
    const before = threadCpuMs()
    this.#current = handshake
    if (handshake.begunAt !== undefined) handshake.stream.deliver()
    else {
      handshake.begunAt = monotonicMs()
      this.#server.emit('connection', handshake.stream)
    }
    this.#current = undefined
    const ms = threadCpuMs() - before
    handshake.costMs += ms
    if (!handshake.isKnown) {
      this.#metrics.seconds.inc({}, ms / 1000)
      this.#order.spent(handshake.network, ms, monotonicMs())
    }
    if (handshake.isDone || handshake.stream.destroyed) this.#finish(handshake)
  }

  /** Called while OpenSSL finishes a handshake. */
  #secured(socket: TLSSocket): void {
    const handshake = this.#current
    if (!handshake) return this.#nativelyDone(socket)
    handshake.isDone = true
    handshake.stream.settle()
    // A TLS socket over a stream does not know them.
    const { remoteAddress, remotePort, remoteFamily, localAddress, localPort } = handshake.socket
    for (const [name, value] of Object.entries({ remoteAddress, remotePort, remoteFamily, localAddress, localPort }))
      Object.defineProperty(socket, name, { value })
  }

  #finish(handshake: Handshake): void {
    if (!this.#unfinished.delete(handshake)) return
    this.#waiting.delete(handshake)
    this.#open.release(handshake)
    this.#begun.release(handshake)
    if (this.#order.ended(handshake.network, handshake.costMs, monotonicMs())) this.#wasCostly(handshake.address, handshake.costMs)
  }

  #wasCostly(address: string, costMs: number): void {
    this.#known.delete(address)
    this.#say(address, `had a TLS handshake of ${Math.round(costMs)} ms of CPU: further handshakes from there wait`)
  }

  #doNatively(socket: Socket): void {
    const end = endOf(socket)
    this.#native.set(end, { socket, since: monotonicMs() })
    socket.once('close', () => this.#nativelyEnded(end))
    this.#server.emit('connection', socket)
  }

  #nativelyDone(socket: TLSSocket): void {
    const end = endOf(socket)
    const native = this.#native.get(end)
    if (!native) return
    if (native.socket.bytesRead > handshakeBytes) this.#wasTooLong(native.socket.remoteAddress ?? '')
    this.#nativelyEnded(end)
  }

  #wasTooLong(address: string): void {
    this.#known.delete(address)
    this.#withoutNativeUntil = monotonicMs() + Math.min(withoutNative.longestMs, withoutNative.firstMs * 2 ** this.#costlyNative++)
    this.#say(address, `sent more than ${handshakeBytes} bytes before the TLS handshake was done: it waits as unknown clients do`)
  }

  #nativelyEnded(end: string): void {
    if (!this.#native.delete(end)) return
    this.#nativeEndedAt = monotonicMs()
    for (const socket of this.#nativeWaiting.keys()) {
      if (this.#native.size >= bounds.native) return
      this.#nativeWaiting.delete(socket)
      if (monotonicMs() < this.#withoutNativeUntil) this.#admit(socket, socket.remoteAddress ?? '', true)
      else this.#doNatively(socket)
    }
  }

  #checkAges(): void {
    const now = monotonicMs()
    for (const handshake of this.#unfinished) if (now - handshake.since > bounds.unfinishedMs) this.#refuse(handshake, 'timeout')
    for (const [socket, since] of this.#nativeWaiting) {
      if (now - Math.max(since, this.#nativeEndedAt) < bounds.nativeWaitMs) continue
      this.#nativeWaiting.delete(socket)
      this.#admit(socket, socket.remoteAddress ?? '', true)
    }
    for (const { socket, since } of this.#native.values()) {
      if (now - since < bounds.unfinishedMs) continue
      this.#known.delete(socket.remoteAddress ?? '')
      this.#metrics.refused.inc({ reason: 'timeout' satisfies Reason })
      socket.destroy()
    }
    if (this.#unfinished.size > 0 || this.#native.size > 0 || this.#nativeWaiting.size > 0) return
    this.#ages?.cancel()
    this.#ages = undefined
  }
}

/** Identifies a connection of the listener by its remote end. */
const endOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string => `${remoteAddress} ${remotePort}`
