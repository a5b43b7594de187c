/** One HTTP/2 connection of a gRPC server: how much of it is under way, whether its peer lives, when it has to go. */
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { type FlowLimits, SessionFlow } from '../../src/push/pacing/flow.ts'
import { Keepalive } from '../../src/push/pacing/keepalive.ts'
import { FrameBudget } from '../../src/xds/stream/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { after, checkEvery, deadlineAfter, type Timer } from '../runtime/timers.ts'

/** How long connections live. Times in milliseconds. */
export interface ConnectionLimits {
  /** How long a connection may be silent before it is asked for a sign of life, at least a second, and how long that may take. */
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  /** After how long its client is asked to come back on another connection. */
  readonly maxConnectionAge: number
}

/** What the server hears of a connection. */
export interface ConnectionEvents {
  /** Bytes are outstanding from now on. */
  busy(): void
  /** The connection was ended because its peer gave no sign of life. */
  dead(peer: string, reason: string): void
}

/** How often a connection is looked at in the time in which it may be silent. */
const looks = 4
/** Shortest interval between two pings, in milliseconds. */
const shortestIntervalMs = 1000
/** How long the streams of a connection have to end once it is too old, and how long a peer has to close a connection that was ended, in milliseconds. */
const graceMs = 10_000

/** A connection of a `node:http2` server. */
export class Http2Connection {
  readonly flow: SessionFlow
  readonly budget = new FrameBudget(monotonicMs())
  /** Address of the other side, for messages. */
  readonly peer: string
  readonly #session: ServerHttp2Session
  readonly #socket: Socket
  readonly #events: ConnectionEvents
  readonly #keepalive: Keepalive
  readonly #timers: Timer[]
  #looked = monotonicMs()
  /** Milliseconds for which the session has been over while its socket was not. */
  #overMs = 0

  /** `socket` is the one below the session: the session lets go of it some time before it is closed, and then has none to ask. */
  constructor(session: ServerHttp2Session, socket: Socket, limits: ConnectionLimits, flowLimits: FlowLimits, events: ConnectionEvents) {
    this.#session = session
    this.#socket = socket
    this.#events = events
    this.peer = socket.remoteAddress ?? ''
    this.flow = new SessionFlow(
      {
        get bytesWritten() {
          return socket.bytesWritten
        },
        get bytesRead() {
          return socket.bytesRead
        },
        get window() {
          return session.state.remoteWindowSize ?? 0
        },
        probe: () => this.#ping(),
      },
      flowLimits,
      { busy: () => events.busy(), dead: () => this.#giveUp('its peer takes nothing and does not answer a ping') },
    )
    const interval = Math.max(shortestIntervalMs, limits.keepaliveInterval)
    this.#keepalive = new Keepalive(interval, limits.keepaliveTimeout)
    const period = Math.min(interval, limits.keepaliveTimeout, graceMs) / looks
    this.#timers = [checkEvery(period, () => this.#look(period)).unref(), after(limits.maxConnectionAge, () => this.#retire()).unref()]
    socket.once('close', () => {
      for (const timer of this.#timers) timer.cancel()
    })
  }

  /** Ends the connection now, whatever its peer does. */
  cut(): void {
    this.#session.destroy()
    this.#socket.destroy()
  }

  #look(period: number): void {
    const now = monotonicMs()
    // A thread that was blocked has not heard what its peers said meanwhile.
    const ms = Math.min(now - this.#looked, period * 2)
    this.#looked = now
    // However the session ended, its socket may still wait for the peer to close the other half.
    if (this.#session.destroyed) this.#overMs += ms
    if (this.#overMs >= graceMs) this.#socket.destroy()
    if (this.#session.destroyed) return
    const next = this.#keepalive.look(ms, this.#socket.bytesRead + this.flow.left)
    if (next === 'ping') this.#ping()
    else if (next === 'give up') {
      // Where bytes are outstanding that is a standstill, whichever limit is reached first.
      this.flow.giveUp('nothing was taken, nor was a keepalive ping answered')
      this.#giveUp('its peer did not answer a keepalive ping')
    }
  }

  #ping(): void {
    if (!this.#session.destroyed) this.#session.ping(() => undefined)
  }

  #giveUp(reason: string): void {
    if (this.#session.destroyed) return
    this.#events.dead(this.peer, reason)
    this.cut()
  }

  /** Asks the peer to go elsewhere, and cuts it off after ten seconds. */
  #retire(): void {
    if (this.#session.destroyed) return
    this.#session.goaway()
    this.#timers.push(deadlineAfter(graceMs, () => this.cut()).unref())
  }
}
