/** Measured handshakes: those whose bytes pass through a stream of this program, one step after another (docs/xds-protocol.md, H1 to H5). */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { clientKey } from '../../src/model/client-address.ts'
import { FairSlots } from '../../src/model/fair-slots.ts'
import { HandshakeOrder, LoopShare, unfinishedMs, type WaitingBytes } from '../../src/transport/handshakes.ts'
import type { KnownAddress, KnownAddresses } from '../../src/transport/known-addresses.ts'
import { HandshakeStream, handshakeBytes } from '../http/handshake-stream.ts'
import { loopTimes, monotonicMs, threadCpuMs } from '../runtime/clock.ts'
import { leftGarbage } from '../runtime/refused-garbage.ts'
import { after, type Timer } from '../runtime/timers.ts'

/**
 * Bounds of unfinished handshakes: `open` of strangers, and as many of known clients; of those of strangers OpenSSL has begun with `begun`
 * (and has answered `begunOfNetwork` of one network within the last `begunMs`).
 */
const bounds = { open: 1024, begun: 256, begunOfNetwork: 4, begunMs: 500 }
/** The parts of the writer's time that handshakes of known clients and of strangers may have while others need it. */
const shares = { known: 0.5, strangers: 0.25 }
/** How long handshakes are served in one turn of the event loop, and how often pauses of clients are looked at, in milliseconds. */
const intervals = { turnMs: 2, pauseMs: 50 }

/** Why a handshake was ended: the client sent too much, took too long, or had to make room for others. */
export type Refusal = 'size' | 'timeout' | 'room'

/** What measured handshakes need of the gate. */
export interface MeasuredParts {
  readonly known: KnownAddresses
  /** Makes the server begin a handshake. */
  begin(stream: Duplex): void
  /** Whether a handshake from an address should be a native one. */
  isNative(address: string): boolean
  /** Takes over the socket of a handshake that has not begun. */
  doNatively(socket: Socket): void
  /** Called for each handshake that is ended. */
  refused(reason: Refusal): void
  /** A step of a handshake of an unknown client cost so many milliseconds of CPU. */
  spentOnStranger(ms: number): void
  /** Called with what the operator should know of a client. */
  say(address: string, what: string): void
}

/** An unfinished handshake. */
class MeasuredHandshake implements WaitingBytes {
  readonly socket: Socket
  readonly address: string
  readonly network: string
  readonly since = monotonicMs()
  readonly stream: HandshakeStream
  /** Whether it may become a native one before it begins. */
  readonly mayLeave: boolean
  readonly #known: KnownAddress
  /** Whether the client was known when it was last looked at. */
  isKnown = false
  /** When OpenSSL began. */
  begunAt: number | undefined
  isDone = false
  /** CPU milliseconds so far. */
  costMs = 0

  constructor(
    { socket, mayLeave }: Pick<MeasuredHandshake, 'socket' | 'mayLeave'>,
    known: KnownAddresses,
    on: { arrived(handshake: MeasuredHandshake): void; exceeded(handshake: MeasuredHandshake): void },
  ) {
    this.socket = socket
    this.mayLeave = mayLeave
    this.address = socket.remoteAddress ?? ''
    this.network = clientKey(this.address)
    this.#known = known.at(this.address)
    this.look(this.since)
    this.stream = new HandshakeStream(socket, { arrived: () => on.arrived(this), exceeded: () => on.exceeded(this) })
  }

  /** Looks whether the client is known by now: it may have presented a credential, or have been costly, since it connected. */
  look(now: number): boolean {
    this.isKnown = this.#known.has(now)
    return this.isKnown
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

/**
 * Does handshakes in the order of {@link HandshakeOrder}: those of known addresses first, within half of the writer's time, then those of
 * strangers, within a quarter.
 */
export class MeasuredHandshakes {
  readonly #parts: MeasuredParts
  readonly #order = new HandshakeOrder()
  readonly #shares = { known: new LoopShare(shares.known, loopTimes()), strangers: new LoopShare(shares.strangers, loopTimes()) }
  readonly #unfinished = new Set<MeasuredHandshake>()
  /**
   * Share out the unfinished handshakes of strangers among their networks, those of them that OpenSSL has begun with, and the unfinished ones
   * of addresses that were known when they connected.
   */
  readonly #open = new FairSlots<MeasuredHandshake>(bounds.open, bounds.open)
  readonly #begun = new FairSlots<MeasuredHandshake>(bounds.begun, bounds.begun)
  readonly #openKnown = new FairSlots<MeasuredHandshake>(bounds.open, bounds.open)
  /** The handshakes with bytes to process. */
  readonly #waiting = new Set<MeasuredHandshake>()
  #current: MeasuredHandshake | undefined
  #isTurnDue = false
  #later: Timer | undefined

  constructor(parts: MeasuredParts) {
    this.#parts = parts
  }

  /** The number of unfinished handshakes. */
  get size(): number {
    return this.#unfinished.size
  }

  /** The number of handshakes with bytes that wait to be processed. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Begins with the handshake of a socket when it is its turn; with `mayLeave`, the socket may be given away before. The handshake that gives
   * way for it is ended.
   */
  take(socket: Socket, mayLeave: boolean): void {
    const handshake = new MeasuredHandshake({ socket, mayLeave }, this.#parts.known, {
      arrived: (arrived) => this.#arrived(arrived),
      exceeded: (exceeding) => {
        this.#parts.refused('size')
        exceeding.forget()
        this.#parts.say(exceeding.address, `ended: the client sent more than ${handshakeBytes} bytes before the TLS handshake was done`)
      },
    })
    this.#unfinished.add(handshake)
    this.#giveWay((handshake.isKnown ? this.#openKnown : this.#open).take(handshake.network, handshake))
    socket.once('close', () => this.#finish(handshake))
    handshake.stream.listen()
  }

  /** An address has become known: its handshakes need not wait any more. */
  becameKnown(): void {
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** A handshake of the server is done. Returns whether it was a measured one; it is called while that is processed. */
  secured(socket: TLSSocket): boolean {
    const handshake = this.#current
    if (!handshake) return false
    handshake.isDone = true
    handshake.stream.settle()
    // A TLS socket over a stream does not know them.
    const { remoteAddress, remotePort, remoteFamily, localAddress, localPort } = handshake.socket
    for (const [name, value] of Object.entries({ remoteAddress, remotePort, remoteFamily, localAddress, localPort }))
      Object.defineProperty(socket, name, { value })
    return true
  }

  /** Ends the handshakes that take too long. */
  checkAges(): void {
    const now = monotonicMs()
    for (const handshake of this.#unfinished) if (now - handshake.since > unfinishedMs) this.#refuse(handshake, 'timeout')
  }

  /** Ends all unfinished handshakes. */
  close(): void {
    for (const { socket } of this.#unfinished) socket.destroy()
  }

  #arrived(handshake: MeasuredHandshake): void {
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
    for (const handshake of this.#waiting) if (this.#isNative(handshake, from)) this.#leave(handshake)
    while (this.#waiting.size > 0) {
      const next = this.#next()
      if (typeof next === 'number') return this.#pause(next)
      const { handshake, share } = next
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
  #next(): { readonly handshake: MeasuredHandshake; readonly share: LoopShare } | number {
    const now = monotonicMs()
    const known: MeasuredHandshake[] = []
    const strangers: MeasuredHandshake[] = []
    for (const handshake of this.#waiting) (handshake.look(now) ? known : strangers).push(handshake)
    let wait = intervals.pauseMs
    for (const [share, candidates] of [
      [this.#shares.known, known],
      [this.#shares.strangers, this.#answerable(strangers, now)],
    ] as const) {
      const handshake = this.#order.next(candidates, now)
      if (handshake && share.isOpen(loopTimes())) return { handshake, share }
      if (handshake) wait = Math.min(wait, share.waitMs)
    }
    return wait
  }

  /**
   * The handshakes of strangers that may go on. Of one network, only a few are answered at a time: once one of its clients has presented a
   * credential, the others of its address are native.
   */
  *#answerable(strangers: readonly MeasuredHandshake[], now: number): Iterable<MeasuredHandshake> {
    let answered: Map<string, number> | undefined
    for (const handshake of strangers) {
      if (handshake.begunAt === undefined) {
        answered ??= this.#answered(now - bounds.begunMs)
        if ((answered.get(handshake.network) ?? 0) >= bounds.begunOfNetwork) continue
      }
      yield handshake
    }
  }

  /** The numbers of handshakes by network that have begun since a time, and whose client has not gone on. */
  #answered(since: number): Map<string, number> {
    const answered = new Map<string, number>()
    for (const { network, begunAt, unanswered } of this.#begun.holders)
      if (begunAt !== undefined && begunAt > since && unanswered === 0) answered.set(network, (answered.get(network) ?? 0) + 1)
    return answered
  }

  /** Whether a handshake has not begun and should be a native one by now. */
  #isNative(handshake: MeasuredHandshake, now: number): boolean {
    return handshake.mayLeave && handshake.begunAt === undefined && handshake.look(now) && this.#parts.isNative(handshake.address)
  }

  /** Gives away the socket of a handshake that has not begun. */
  #leave(handshake: MeasuredHandshake): void {
    this.#finish(handshake)
    handshake.stream.release()
    this.#parts.doNatively(handshake.socket)
  }

  #pause(ms: number): void {
    this.#later ??= after(Math.max(1, ms), () => {
      this.#later = undefined
      this.#turn()
    }).unref()
  }

  #giveWay(handshake: MeasuredHandshake | undefined): void {
    if (handshake) this.#refuse(handshake, 'room')
  }

  #refuse(handshake: MeasuredHandshake, reason: Refusal): void {
    this.#parts.refused(reason)
    handshake.socket.destroy()
    this.#finish(handshake)
  }

  /** Gives the waiting bytes of a handshake to OpenSSL, and measures. */
  #step(handshake: MeasuredHandshake): void {
    const before = threadCpuMs()
    this.#current = handshake
    if (handshake.begunAt !== undefined) handshake.stream.deliver()
    else {
      handshake.begunAt = monotonicMs()
      this.#parts.begin(handshake.stream)
      handshake.stream.start()
    }
    this.#current = undefined
    const ms = threadCpuMs() - before
    handshake.costMs += ms
    if (!handshake.isKnown) this.#parts.spentOnStranger(ms)
    this.#order.spent(handshake.client, ms, monotonicMs())
    if (handshake.isDone || handshake.stream.destroyed) this.#finish(handshake)
  }

  #finish(handshake: MeasuredHandshake): void {
    if (!this.#unfinished.delete(handshake)) return
    this.#waiting.delete(handshake)
    for (const slots of [this.#open, this.#begun, this.#openKnown]) slots.release(handshake)
    if (!handshake.isDone) leftGarbage()
    if (this.#order.ended(handshake.network, handshake.costMs, monotonicMs())) this.#wasCostly(handshake)
  }

  #wasCostly(handshake: MeasuredHandshake): void {
    handshake.forget()
    const { address, costMs } = handshake
    this.#parts.say(address, `had a TLS handshake of ${Math.round(costMs)} ms of CPU: further handshakes from there wait`)
  }
}
