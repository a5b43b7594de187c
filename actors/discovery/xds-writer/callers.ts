/**
 * The callers of a writer's streams: authenticates them, checks that they may act for their node, ends streams whose token expired, and
 * reports identities to the authority's ledger.
 */
import { randomInt } from 'node:crypto'
import type { ProxyNode } from '../../../protocols/data.ts'
import type { Caller } from '../../../protocols/messages/identity.ts'
import type { IdentityEvent } from '../../../protocols/messages/trust.ts'
import { checkNode } from '../../../src/identity/access.ts'
import { endOfCredential } from '../../../src/identity/credential-life.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import { checkEvery } from '../../runtime/timers.ts'
import { type Authenticated, type Authentication, isRefused } from './authentication.ts'
import type { Connection } from './connection.ts'

/** Interval at which streams with expired tokens are looked for, in milliseconds. */
const checkMs = 1000

/** Dependencies and settings of {@link Callers}. */
export interface CallerParts {
  readonly authentication: Authentication
  /**
   * Whether callers of the secured port are authenticated (`XDS_AUTH`), and whether they must match the node that they name
   * (`PILOT_ENABLE_XDS_IDENTITY_CHECK`).
   */
  readonly authenticates: boolean
  readonly checksNode: boolean
  /** How long a stream continues after its token has expired, in milliseconds. */
  readonly grace: number
  readonly metrics: MetricRegistry
  /** Logs a refusal. The number of lines of one kind is limited. */
  warn(kind: string, line: string): void
}

/** Authenticates and tracks the callers of one writer's streams. */
export class Callers {
  readonly #parts: CallerParts
  readonly #refused: Counter
  /** Streams that are ended when their token expires, with the time of that (Unix milliseconds). */
  readonly #ends = new Map<GrpcStream, number>()
  #ledger: Peer<IdentityEvent> | undefined

  constructor(parts: CallerParts) {
    this.#parts = parts
    const labelNames = ['reason']
    this.#refused = new Counter({
      name: 'pilot_xds_refused_streams_total',
      help: 'XDS streams of the secured port that were refused, by what was missing: authentication, or an identity that may act for the node',
      labelNames,
      registers: [parts.metrics],
    })
    for (const reason of ['authentication', 'identity']) this.#refused.inc({ reason }, 0)
    checkEvery(checkMs, () => this.#endExpired()).unref()
  }

  /**
   * Authenticates a new stream and passes its caller to `take`, or ends the stream. Messages of the client are not read until then; they
   * stay within the stream's flow-control window. In plain text, and without `XDS_AUTH`, `take` is called at once without a caller.
   */
  open(stream: GrpcStream, take: (caller: Caller | undefined) => void): void {
    if (!stream.isSecure || !this.#parts.authenticates) return take(undefined)
    const over = new AbortController()
    const authenticated = this.#parts.authentication.authenticate(stream, 'xds', over.signal)
    if (!(authenticated instanceof Promise)) return this.#decide(stream, authenticated, take)
    stream.onClose(() => over.abort())
    void authenticated.then((answer) => {
      if (!over.signal.aborted) this.#decide(stream, answer, take)
    })
  }

  /** Checks that the caller may act for the node of its proxy. Returns the reason for a refusal, or undefined. */
  refusal(connection: Connection, node: ProxyNode): string | undefined {
    const { caller } = connection
    if (!caller || !this.#parts.checksNode) return undefined
    const checked = checkNode(caller, node)
    if ('verified' in checked) connection.verifiedIdentity = checked.verified
    else this.#refused.inc({ reason: 'identity' })
    return 'refused' in checked ? checked.refused : undefined
  }

  /** The link to the ledger is up: reports all open streams. */
  linked(ledger: Peer<IdentityEvent>, open: Iterable<Connection>): void {
    this.#ledger = ledger
    for (const connection of open) this.connected(connection)
  }

  /** What follows another cluster was removed, or follows one in its place: ends the streams of the callers for whom that cluster vouches (docs/identity.md, I12). */
  vouchedNoMore(cluster: string, open: Iterable<Connection>): void {
    for (const { caller, stream } of open)
      if (caller?.cluster?.isOwn === false && caller.cluster.id === cluster)
        stream.end(status.unauthenticated, 'the cluster that vouches for the caller is none of the mesh any more')
  }

  /** Reports a proxy whose node is known. */
  connected({ id, caller, node }: Connection): void {
    this.#ledger?.tell({ type: 'IdentityConnected', connection: id, caller, node: node?.id ?? '' }, id)
  }

  /** Reports that a proxy's stream is closed. */
  gone({ id }: Connection): void {
    this.#ledger?.tell({ type: 'IdentityGone', connection: id }, id)
  }

  #decide(stream: GrpcStream, authenticated: Authenticated, take: (caller: Caller) => void): void {
    if (isRefused(authenticated)) {
      this.#refused.inc({ reason: 'authentication' })
      this.#parts.warn(`unauthenticated|${stream.peer}`, `stream from ${stream.peer} refused: ${authenticated.message}: ${authenticated.reason}`)
      return stream.end(authenticated.code, authenticated.message)
    }
    // Expiry of a client certificate is handled by the connection.
    if (authenticated.via === 'token') {
      this.#ends.set(stream, endOfCredential(authenticated.expiresAt, this.#parts.grace, randomInt(1000) / 1000))
      stream.onClose(() => this.#ends.delete(stream))
    }
    take(authenticated)
  }

  #endExpired(): void {
    const now = wallClockMs()
    for (const [stream, at] of this.#ends) {
      if (at > now) continue
      this.#ends.delete(stream)
      stream.end(status.unavailable, 'the token of this stream has expired')
    }
  }
}
