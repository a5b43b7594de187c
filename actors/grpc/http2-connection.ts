/** One HTTP/2 connection of a gRPC server: its flow control, keepalive and end. */
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { VerifiedClient } from '../../src/identity/client-trust.ts'
import { distrustedMs, endOfCredential } from '../../src/identity/credential-life.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'
import { status } from '../../src/model/status-codes.ts'
import { type FlowLimits, SessionFlow } from '../../src/transport/flow.ts'
import { Keepalive } from '../../src/transport/keepalive.ts'
import { Refusals } from '../../src/transport/refusals.ts'
import { FrameBudget } from '../../src/xds/stream/frames.ts'
import { isLoopbackAddress, isPassedOn } from '../http/loopback.ts'
import { chance } from '../runtime/chance.ts'
import { monotonicMs, wallClockMs } from '../runtime/clock.ts'
import { leftGarbage } from '../runtime/refused-garbage.ts'
import { after, deadlineAfter, type Timer } from '../runtime/timers.ts'

/** Limits on the life of connections, in milliseconds. */
export interface ConnectionLimits {
  /** How long a connection may be idle before it is pinged (at least a second), and how long the answer may take. */
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  /** Age at which the client is asked to reconnect, or up to a tenth earlier. */
  readonly maxConnectionAge: number
  /** Minimum time for which a connection continues after its client certificate has expired ({@link endOfCredential}). */
  readonly credentialGrace: number
}

/** A stream of a connection that is being ended. */
interface Releasable {
  release(code: number, message: string): void
}

/** When (Unix milliseconds) and why a connection has to end. */
interface Dismissal {
  readonly at: number
  readonly reason: string
}

/** Callbacks of a connection. */
export interface ConnectionEvents {
  /** Called when bytes become outstanding. */
  busy(): void
  /** Called when the socket has closed: {@link Http2Connection.check} is not needed any more. */
  closed(): void
  /** Called when the connection was ended because its peer does not respond. */
  dead(peer: string, reason: string): void
}

/** Number of checks within the shortest of the times that they measure. */
const looks = 4
/** Minimum interval between two pings, in milliseconds. */
const shortestIntervalMs = 1000
/**
 * How long the streams of a connection may take to end once it is to go, and how long the peer may take to close an ended connection, in
 * milliseconds.
 */
const graceMs = 10_000
/** The part of its maximum age by which a connection may end earlier, so that clients that connected together do not reconnect together. */
const ageSpread = 0.1

/** Returns the ping interval of a connection in milliseconds. */
const pingInterval = ({ keepaliveInterval }: ConnectionLimits): number => Math.max(shortestIntervalMs, keepaliveInterval)

/** Returns the interval at which {@link Http2Connection.check} has to be called, in milliseconds. */
export const checkInterval = (limits: ConnectionLimits): number => Math.min(pingInterval(limits), limits.keepaliveTimeout, graceMs) / looks

/** A connection of a `node:http2` server. */
export class Http2Connection {
  readonly flow: SessionFlow
  readonly budget = new FrameBudget(monotonicMs())
  /** Address of the client, for log lines. */
  readonly peer: string
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean
  /** Whether both ends have loopback addresses. */
  readonly isLocal: boolean
  readonly ends: ConnectionEnds
  /** The open streams. */
  readonly streams = new Set<Releasable>()
  readonly #client: VerifiedClient | undefined
  readonly #refusals = new Refusals(monotonicMs())
  #dismissal: Dismissal | undefined
  /** When the connection ends because its client is not trusted any more, on the monotonic clock: no step of the wall clock delays it. */
  #distrustedAt = Number.POSITIVE_INFINITY
  readonly #session: ServerHttp2Session
  readonly #socket: Socket
  readonly #events: ConnectionEvents
  readonly #keepalive: Keepalive
  readonly #timers: Timer[]
  /** The maximum time that one check charges, in milliseconds. */
  readonly #maxChargedMs: number
  #looked = monotonicMs()
  /** Milliseconds since the session ended while its socket stayed open. */
  #overMs = 0

  /**
   * `socket`: the socket of the session, passed separately because the session detaches it before closing. `client`: the verified client
   * certificate.
   */
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
    const { localAddress, localPort, remoteAddress, remotePort } = socket
    this.ends = { localAddress, localPort, remoteAddress, remotePort }
    this.isLocal = isLoopbackAddress(socket.localAddress) && isLoopbackAddress(socket.remoteAddress) && !isPassedOn(socket.remoteAddress)
    if (client)
      this.#dismissal = {
        at: endOfCredential(client.caller.expiresAt, limits.credentialGrace, chance()),
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
      { busy: () => events.busy(), dead: () => this.#giveUp('the peer reads no data and does not answer a ping') },
    )
    this.#keepalive = new Keepalive(pingInterval(limits), limits.keepaliveTimeout)
    this.#maxChargedMs = checkInterval(limits) * 2
    this.#timers = [after(limits.maxConnectionAge * (1 - ageSpread * chance()), () => this.#retire()).unref()]
    socket.once('close', () => {
      for (const timer of this.#timers) timer.cancel()
      events.closed()
    })
  }

  /** The caller by client certificate, while that is valid and trusted. */
  get caller(): Caller | undefined {
    return this.#client && !this.isExpired ? this.#client.caller : undefined
  }

  /** Whether the client certificate has expired since the connection was opened. */
  get isExpired(): boolean {
    return this.#client !== undefined && this.#client.caller.expiresAt < wallClockMs()
  }

  /** Applies a change of trust: a connection whose client is no longer trusted is scheduled to end. */
  checkTrust(trusts: (client: VerifiedClient) => boolean): void {
    if (!this.#client || trusts(this.#client)) return
    this.#distrustedAt = Math.min(this.#distrustedAt, monotonicMs() + distrustedMs * chance())
  }

  /** Ends all streams with `Unavailable` and then the connection; the client needs a new connection for new streams. */
  dismiss(reason: string): void {
    this.#dismissal = undefined
    this.#distrustedAt = Number.POSITIVE_INFINITY
    for (const stream of this.streams) stream.release(status.unavailable, reason)
    this.#retire()
  }

  /** Counts a stream that ended with an error. Destroys the connection when there were too many ({@link Refusals}). */
  refused(): void {
    leftGarbage()
    if (!this.#refusals.count(monotonicMs())) this.#giveUp('too many of its streams were refused')
  }

  /** Destroys the connection at once. */
  cut(): void {
    this.#session.destroy()
    this.#socket.destroy()
  }

  /** Pings an idle peer, and ends a connection whose peer does not answer, whose credential has expired, or whose socket is left over. */
  check(): void {
    const now = monotonicMs()
    // If this thread was blocked, answers of the peer may be waiting to be read, so the time charged is limited.
    const ms = Math.min(now - this.#looked, this.#maxChargedMs)
    this.#looked = now
    // The session has ended, but its socket may still wait for the peer to close its side.
    if (this.#session.destroyed) this.#overMs += ms
    if (this.#overMs >= graceMs) this.#socket.destroy()
    if (this.#session.destroyed) return
    if (this.#distrustedAt <= now) this.dismiss('the client certificate is no longer trusted')
    else if (this.#dismissal && this.#dismissal.at <= wallClockMs()) this.dismiss(this.#dismissal.reason)
    const next = this.#keepalive.check(ms, this.#socket.bytesRead + this.flow.freedBytes)
    if (next === 'ping') this.#ping()
    else if (next === 'give up') {
      // With outstanding bytes this is also a standstill of the streams, so they are reported as such.
      this.flow.giveUp('the client read no data and did not answer a keepalive ping')
      this.#giveUp('the peer did not answer a keepalive ping')
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

  /** Sends GOAWAY, and destroys the connection after ten seconds. */
  #retire(): void {
    if (this.#session.destroyed) return
    this.#session.goaway()
    this.#timers.push(deadlineAfter(graceMs, () => this.cut()).unref())
  }
}
