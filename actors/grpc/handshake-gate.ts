/** The handshakes of a TLS server whose thread serves others (docs/xds-protocol.md, H1 to H6). */
import type { Http2SecureServer } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { clientKey } from '../../src/model/client-address.ts'
import { FairSlots } from '../../src/model/fair-slots.ts'
import { costlyMs, HandshakeOrder, LoopShare, NativeRight, type WaitingBytes } from '../../src/push/pacing/handshakes.ts'
import type { KnownAddress, KnownAddresses } from '../../src/push/pacing/known-addresses.ts'
import { HandshakeStream, handshakeBytes } from '../http/handshake-stream.ts'
import { loopTimes, monotonicMs, threadCpuMs } from '../runtime/clock.ts'
import { Counter, Gauge, type Registry } from '../runtime/metrics.ts'
import { after, checkEvery, type Timer } from '../runtime/timers.ts'

/**
 * Bounds of unfinished handshakes: `open` of strangers, and as many of known clients; of those of strangers OpenSSL has begun with `begun`
 * (and with `begunOfNetwork` of one network within the last `begunMs`); `native` ones. Times in milliseconds: how long a handshake may take
 * in all; how long known clients wait for a native handshake while none ends.
 */
const bounds = { open: 1024, begun: 256, begunOfNetwork: 4, begunMs: 500, native: 2, unfinishedMs: 10_000, nativeWaitMs: 1000 }
/** The parts of the writer's time that handshakes of known clients and of strangers may have while others need it. */
const shares = { known: 0.5, strangers: 0.25 }
/**
 * Bytes of a native handshake up to which it is ordinary whatever it cost: a chain of RSA-2048 with a post-quantum key share is 3.5 KB, and
 * the costliest 4 KB take 40 ms.
 */
const ordinaryBytes = 4096
/** How long handshakes are served in one turn of the event loop, how often pauses of clients are looked at, and how often ages, in milliseconds. */
const intervals = { turnMs: 2, pauseMs: 50, ageMs: 500 }

/** Why a handshake was ended: the client sent too much, took too long, or had to make room for others. */
type Reason = 'size' | 'timeout' | 'room'

/** An unfinished handshake that passes through {@link HandshakeStream}. */
class Handshake implements WaitingBytes {
  readonly socket: Socket
  readonly address: string
  readonly network: string
  readonly since = monotonicMs()
  readonly stream: HandshakeStream
  readonly #known: KnownAddress
  /** When OpenSSL began. */
  begunAt: number | undefined
  isDone = false
  /** CPU milliseconds so far. */
  costMs = 0

  constructor(
    socket: Socket,
    address: string,
    known: KnownAddress,
    gate: { arrived(handshake: Handshake): void; exceeded(handshake: Handshake): void },
  ) {
    this.socket = socket
    this.address = address
    this.network = clientKey(address)
    this.#known = known
    this.stream = new HandshakeStream(socket, { arrived: () => gate.arrived(this), exceeded: () => gate.exceeded(this) })
  }

  /** Whether the client is known at this moment: it may have presented a credential, or have been costly, since it connected. */
  get isKnown(): boolean {
    return this.#known.has(monotonicMs())
  }

  /** The client was costly, or sent too much. */
  forget(): void {
    this.#known.delete()
  }

  get client(): string {
    return this.isKnown ? this.address : this.network
  }

  get unanswered(): number {
    return this.stream.unanswered
  }
}

/** A native handshake under way. */
interface Native {
  readonly socket: Socket
  readonly address: string
  readonly since: number
}

/**
 * Accepts connections for a TLS server and hands them over. Handshakes pass through {@link HandshakeStream}, in the order of {@link
 * HandshakeOrder}: those of known addresses first, within half of the writer's time, then those of strangers, within a quarter. Two at a
 * time of known addresses are native: done by a TLS socket that reads the descriptor itself, which makes all later bytes cheaper and bounds
 * nothing, so an address whose native handshake was not an ordinary one has no further ones ({@link NativeRight}).
 */
export class HandshakeGate {
  /** Listens. Its connections include those whose handshake is unfinished. */
  readonly listener: Server
  readonly #server: Http2SecureServer
  readonly #known: KnownAddresses
  readonly #order = new HandshakeOrder()
  readonly #shares = { known: new LoopShare(shares.known, loopTimes()), strangers: new LoopShare(shares.strangers, loopTimes()) }
  readonly #unfinished = new Set<Handshake>()
  /**
   * Share out the unfinished handshakes of strangers among their networks, those of them that OpenSSL has begun with, and the unfinished ones
   * of addresses that were known when they connected.
   */
  readonly #open = new FairSlots<Handshake>(bounds.open, bounds.open)
  readonly #begun = new FairSlots<Handshake>(bounds.begun, bounds.begun)
  readonly #openKnown = new FairSlots<Handshake>(bounds.open, bounds.open)
  /** The handshakes with bytes to process. */
  readonly #waiting = new Set<Handshake>()
  readonly #nativeRight = new NativeRight()
  /** The native handshakes under way by the remote end, and the sockets that wait for one, with the time since when. */
  readonly #native = new Map<string, Native>()
  readonly #nativeWaiting = new Map<Socket, number>()
  /** When a native handshake last ended. */
  #nativeEndedAt = 0
  /** CPU time of the thread when its event loop last began a turn, or a native handshake was judged; taken while any is under way. */
  #markedCpuMs = 0
  #isMarking = false
  readonly #say: (address: string, what: string) => void
  readonly #metrics: { readonly refused: Counter<'reason'>; readonly seconds: Counter }
  #current: Handshake | undefined
  #isTurnDue = false
  #later: Timer | undefined
  #ages: Timer | undefined

  /** `say` is called with what the operator should know of a client, as often as it happens. */
  constructor(server: Http2SecureServer, known: KnownAddresses, registry: Registry, say: (address: string, what: string) => void) {
    this.#server = server
    this.#known = known
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
      help: 'TLS handshakes with bytes that wait to be processed',
      registers,
      collect() {
        this.set({}, waiting())
      },
    })
  }

  /** A client at an address presented a valid credential: its next connections wait for nobody. */
  trust(address: string): void {
    this.#known.at(address).add(monotonicMs())
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** Whether a client at an address presented a valid credential. */
  isKnown(address: string): boolean {
    return this.#known.at(address).has(monotonicMs())
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
    else this.#admit(socket, address)
  }

  #admit(socket: Socket, address: string): void {
    const handshake = new Handshake(socket, address, this.#known.at(address), {
      arrived: (arrived) => this.#arrived(arrived),
      exceeded: (exceeding) => {
        this.#metrics.refused.inc({ reason: 'size' satisfies Reason })
        exceeding.forget()
        this.#say(address, `ended: the client sent more than ${handshakeBytes} bytes before the TLS handshake was done`)
      },
    })
    this.#unfinished.add(handshake)
    this.#giveWay((handshake.isKnown ? this.#openKnown : this.#open).take(handshake.network, handshake))
    socket.once('close', () => this.#finish(handshake))
    handshake.stream.listen()
  }

  #arrived(handshake: Handshake): void {
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

  /** Processes bytes of handshakes, for as long as a turn and their shares allow. */
  #turn(): void {
    const from = monotonicMs()
    while (this.#waiting.size > 0) {
      const next = this.#next()
      if (typeof next === 'number') return this.#pause(next)
      const { handshake, share } = next
      if (handshake.begunAt === undefined && this.#isNative(handshake.address)) {
        this.#leaveNative(handshake)
        continue
      }
      this.#waiting.delete(handshake)
      if (handshake.begunAt === undefined && !handshake.isKnown) this.#giveWay(this.#begun.take(handshake.network, handshake))
      const began = monotonicMs()
      this.#step(handshake)
      const now = monotonicMs()
      share.used(now - began)
      if (now - from > intervals.turnMs) return this.#schedule()
    }
  }

  /** Returns the handshake to go on with and the share that it uses, or how long to wait for one in milliseconds. */
  #next(): { readonly handshake: Handshake; readonly share: LoopShare } | number {
    const now = monotonicMs()
    let wait = intervals.pauseMs
    for (const [share, candidates] of [
      [this.#shares.known, this.#knownWaiting()],
      [this.#shares.strangers, this.#strangersWaiting()],
    ] as const) {
      const handshake = this.#order.next(candidates, now)
      if (handshake && share.isOpen(loopTimes())) return { handshake, share }
      if (handshake) wait = Math.min(wait, share.waitMs)
    }
    return wait
  }

  *#knownWaiting(): Iterable<Handshake> {
    for (const handshake of this.#waiting) if (handshake.isKnown) yield handshake
  }

  /**
   * The handshakes of strangers that may go on. Of one network, only a few are begun with at a time: once one of its clients has presented a
   * credential, the others of its address are native.
   */
  *#strangersWaiting(): Iterable<Handshake> {
    const since = monotonicMs() - bounds.begunMs
    const fresh = new Map<string, number>()
    for (const { network, begunAt } of this.#begun.holders)
      if (begunAt !== undefined && begunAt > since) fresh.set(network, (fresh.get(network) ?? 0) + 1)
    for (const handshake of this.#waiting)
      if (!handshake.isKnown && (handshake.begunAt !== undefined || (fresh.get(handshake.network) ?? 0) < bounds.begunOfNetwork)) yield handshake
  }

  /** Whether a handshake from an address is native, as soon as there is room. */
  #isNative(address: string): boolean {
    return this.isKnown(address) && this.#nativeRight.has(address, monotonicMs())
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
    if (!handshake.isKnown) this.#metrics.seconds.inc({}, ms / 1000)
    this.#order.spent(handshake.client, ms, monotonicMs())
    if (handshake.isDone || handshake.stream.destroyed) this.#finish(handshake)
  }

  /** Called while OpenSSL finishes a handshake. */
  #secured(socket: TLSSocket): void {
    const handshake = this.#current
    if (!handshake) return this.#nativelyEnded(endOf(socket), true)
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
    for (const slots of [this.#open, this.#begun, this.#openKnown]) slots.release(handshake)
    if (this.#order.ended(handshake.network, handshake.costMs, monotonicMs())) this.#wasCostly(handshake)
  }

  #wasCostly(handshake: Handshake): void {
    handshake.forget()
    const { address, costMs } = handshake
    this.#say(address, `had a TLS handshake of ${Math.round(costMs)} ms of CPU: further handshakes from there wait`)
  }

  #doNatively(socket: Socket): void {
    const end = endOf(socket)
    this.#native.set(end, { socket, address: socket.remoteAddress ?? '', since: monotonicMs() })
    socket.once('close', () => this.#nativelyEnded(end, false))
    this.#mark()
    this.#server.emit('connection', socket)
  }

  /** Takes the CPU time of the thread now and at each turn of its event loop, without keeping it from waiting. */
  #mark(): void {
    this.#markedCpuMs = threadCpuMs()
    if (this.#isMarking) return
    this.#isMarking = true
    setImmediate(() => {
      this.#isMarking = false
      if (this.#native.size > 0) this.#mark()
    }).unref()
  }

  /** Ends a native handshake, whether it is done or its client has gone, and begins with the next ones. */
  #nativelyEnded(end: string, isDone: boolean): void {
    const native = this.#native.get(end)
    if (!native) return
    this.#native.delete(end)
    this.#nativeEndedAt = monotonicMs()
    this.#judge(native, isDone)
    for (const socket of this.#nativeWaiting.keys()) {
      if (this.#native.size >= bounds.native) return
      this.#nativeWaiting.delete(socket)
      this.#accept(socket)
    }
  }

  /**
   * Withdraws the right to native handshakes from an address, if a handshake was not an ordinary one: it took more bytes than any needs, or
   * more than {@link ordinaryBytes} and was costly or never done. Its cost is at most the time that the thread used since it was marked. The
   * bytes may include the first request, so the address stays known.
   */
  #judge({ socket: { bytesRead }, address }: Native, isDone: boolean): void {
    const cpuMs = threadCpuMs()
    const costMs = cpuMs - this.#markedCpuMs
    this.#markedCpuMs = cpuMs
    if (bytesRead <= ordinaryBytes || (bytesRead <= handshakeBytes && isDone && costMs < costlyMs)) return
    this.#nativeRight.withdraw(address, monotonicMs())
    this.#say(address, `sent ${bytesRead} bytes until the TLS handshake ended: the bytes of further ones from there are bounded`)
  }

  #checkAges(): void {
    const now = monotonicMs()
    for (const handshake of this.#unfinished) if (now - handshake.since > bounds.unfinishedMs) this.#refuse(handshake, 'timeout')
    for (const [socket, since] of this.#nativeWaiting) {
      if (now - Math.max(since, this.#nativeEndedAt) < bounds.nativeWaitMs) continue
      this.#nativeWaiting.delete(socket)
      this.#admit(socket, socket.remoteAddress ?? '')
    }
    for (const { socket, address, since } of this.#native.values()) {
      if (now - since < bounds.unfinishedMs) continue
      this.#nativeRight.withdraw(address, now)
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
