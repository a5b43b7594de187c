/** One HTTP/2 connection of a writer: how much of it is under way, whether its peer lives, when it has to go. */
import type { ServerHttp2Session } from 'node:http2'
import { type FlowLimits, SessionFlow } from '../../src/push/pacing/flow.ts'
import { Keepalive } from '../../src/push/pacing/keepalive.ts'
import { FrameBudget } from '../../src/xds/session/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { after, every, type Timer } from '../runtime/timers.ts'

/** How long connections live. Times in milliseconds. */
export interface ConnectionLimits {
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
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
/** How long the streams of a connection have to end once it is too old, in milliseconds. */
const graceMs = 10_000

/** A connection of an `node:http2` server. */
export class Http2Connection {
  readonly flow: SessionFlow
  readonly budget = new FrameBudget(monotonicMs())
  readonly #session: ServerHttp2Session
  readonly #events: ConnectionEvents
  readonly #keepalive: Keepalive
  readonly #timers: Timer[]
  #looked = monotonicMs()

  constructor(session: ServerHttp2Session, limits: ConnectionLimits, flowLimits: FlowLimits, events: ConnectionEvents) {
    this.#session = session
    this.#events = events
    const counters = this.#counters
    this.flow = new SessionFlow(
      {
        get bytesWritten() {
          return counters().bytesWritten
        },
        get bytesRead() {
          return counters().bytesRead
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
    const period = Math.min(interval, limits.keepaliveTimeout) / looks
    this.#timers = [every(period, () => this.#look(period)).unref(), after(limits.maxConnectionAge, () => this.#retire()).unref()]
    session.on('close', () => {
      for (const timer of this.#timers) timer.cancel()
    })
  }

  /** What the socket has read and written. A session that is destroyed has none any more, some time before it is closed. */
  readonly #counters = (): { readonly bytesRead: number; readonly bytesWritten: number } => {
    const socket = this.#session.destroyed ? undefined : this.#session.socket
    if (socket) this.#last = { bytesRead: socket.bytesRead, bytesWritten: socket.bytesWritten }
    return this.#last
  }
  #last = { bytesRead: 0, bytesWritten: 0 }

  #look(period: number): void {
    const now = monotonicMs()
    // A thread that was blocked has not heard what its peers said meanwhile.
    const ms = Math.min(now - this.#looked, period * 2)
    this.#looked = now
    if (this.#session.destroyed) return
    const next = this.#keepalive.look(ms, this.#counters().bytesRead + this.flow.left)
    if (next === 'ping') this.#ping()
    else if (next === 'give up') this.#giveUp('its peer did not answer a keepalive ping')
  }

  #ping(): void {
    if (!this.#session.destroyed && !this.#session.closed) this.#session.ping(() => undefined)
  }

  #giveUp(reason: string): void {
    if (this.#session.destroyed) return
    this.#events.dead(this.#session.socket?.remoteAddress ?? '', reason)
    this.#session.destroy()
  }

  /** Asks the peer to go elsewhere, and cuts it off after ten seconds. */
  #retire(): void {
    if (this.#session.destroyed) return
    this.#session.goaway()
    this.#timers.push(after(graceMs, () => this.#session.destroy()).unref())
  }
}
