/** One HTTP/2 connection of a gRPC server: how much of it is under way, whether its peer lives, when it has to go. */
import { randomInt } from 'node:crypto'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { VerifiedClient } from '../../src/identity/client-trust.ts'
import { distrustedMs, endOfCredential } from '../../src/identity/credential-life.ts'
import { status } from '../../src/model/status-codes.ts'
import { type FlowLimits, SessionFlow } from '../../src/push/pacing/flow.ts'
import { Keepalive } from '../../src/push/pacing/keepalive.ts'
import { FrameBudget } from '../../src/xds/stream/frames.ts'
import { isLoopbackAddress, isPassedOn } from '../http/loopback.ts'
import { monotonicMs, wallClockMs } from '../runtime/clock.ts'
import { after, checkEvery, deadlineAfter, type Timer } from '../runtime/timers.ts'

/** How long connections live. Times in milliseconds. */
export interface ConnectionLimits {
  /** How long a connection may be silent before it is asked for a sign of life, at least a second, and how long that may take. */
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  /** After how long its client is asked to come back on another connection. */
  readonly maxConnectionAge: number
  /** How long a connection goes on after the certificate of its client has expired, at least ({@link endOfCredential}). */
  readonly credentialGrace: number
}

/** A stream of a connection that is to go. */
interface Releasable {
  release(code: number, message: string): void
}

/** Why and when (Unix milliseconds) a connection has to go. */
interface Dismissal {
  readonly at: number
  readonly reason: string
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
/** A number from 0 to 1 by chance: moments that clients shall not share. */
const randomShare = (): number => randomInt(1_000_000) / 1_000_000
/** How long the streams of a connection have to end once it is too old, and how long a peer has to close a connection that was ended, in milliseconds. */
const graceMs = 10_000

/** A connection of a `node:http2` server. */
export class Http2Connection {
  readonly flow: SessionFlow
  readonly budget = new FrameBudget(monotonicMs())
  /** Address of the other side, for messages. */
  readonly peer: string
  /** Whether it came over TLS. */
  readonly isSecure: boolean
  /** Whether both of its ends have loopback addresses. */
  readonly isLocal: boolean
  /** Streams that are open. */
  readonly streams = new Set<Releasable>()
  readonly #client: VerifiedClient | undefined
  #dismissal: Dismissal | undefined
  readonly #session: ServerHttp2Session
  readonly #socket: Socket
  readonly #events: ConnectionEvents
  readonly #keepalive: Keepalive
  readonly #timers: Timer[]
  #looked = monotonicMs()
  /** Milliseconds for which the session has been over while its socket was not. */
  #overMs = 0

  /** `socket` is the one below the session: the session lets go of it some time before it is closed, and then has none to ask. `client` is who has presented a certificate. */
  constructor(
    session: ServerHttp2Session,
    { socket, client }: { readonly socket: Socket; readonly client: VerifiedClient | undefined },
    limits: ConnectionLimits,
    flowLimits: FlowLimits,
    events: ConnectionEvents,
  ) {
    this.#session = session
    this.#client = client
    this.isSecure = 'encrypted' in socket
    this.isLocal = isLoopbackAddress(socket.localAddress) && isLoopbackAddress(socket.remoteAddress) && !isPassedOn(socket.remoteAddress)
    if (client)
      this.#dismissal = {
        at: endOfCredential(client.caller.expiresAt, limits.credentialGrace, randomShare()),
        reason: 'the client certificate has expired',
      }
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

  /** Who has presented a certificate that is valid and trusted at present. */
  get caller(): Caller | undefined {
    return this.#client && !this.isExpired ? this.#client.caller : undefined
  }

  /** Whether the client has presented a certificate that has expired since. */
  get isExpired(): boolean {
    return this.#client !== undefined && this.#client.caller.expiresAt < wallClockMs()
  }

  /** Trust has changed: a connection whose client is not trusted any more has to go. */
  checkTrust(trusts: (client: VerifiedClient) => boolean): void {
    if (!this.#client || trusts(this.#client)) return
    const at = wallClockMs() + distrustedMs * randomShare()
    if (!this.#dismissal || at < this.#dismissal.at) this.#dismissal = { at, reason: 'the client certificate is not trusted any more' }
  }

  /** Ends all streams with `Unavailable`, and the connection: new streams need a new one. */
  dismiss(reason: string): void {
    this.#dismissal = undefined
    for (const stream of this.streams) stream.release(status.unavailable, reason)
    this.#retire()
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
    if (this.#dismissal && this.#dismissal.at <= wallClockMs()) this.dismiss(this.#dismissal.reason)
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
