/** The callers of a writer's streams: admitted, held to what their node says, ended with their credential, and told to the ledger. */
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
import { Counter, type Registry } from '../../runtime/metrics.ts'
import { checkEvery } from '../../runtime/timers.ts'
import { type Admission, type Admitted, isRefused } from './admission.ts'
import type { Connection } from './connection.ts'

/** How often streams are looked at whose tokens expire, in milliseconds. */
const lookMs = 1000

/** What callers need of their writer. */
export interface CallerParts {
  readonly admission: Admission
  /** Whether callers of the secured port are authenticated (`XDS_AUTH`), and held to the node that they name (`PILOT_ENABLE_XDS_IDENTITY_CHECK`). */
  readonly authenticates: boolean
  readonly checksNode: boolean
  /** How long a stream goes on after its token has expired, in milliseconds. */
  readonly grace: number
  readonly metrics: Registry
  /** Logs a refusal; of a kind of them a few lines. */
  warn(kind: string, line: string): void
}

/** Who is at the other end of the streams of one writer. */
export class Callers {
  readonly #parts: CallerParts
  readonly #refused: Counter
  /** Streams that end with their token, and when (Unix milliseconds). */
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
    checkEvery(lookMs, () => this.#endExpired()).unref()
  }

  /**
   * Finds out who opens a stream, and hands it on with its caller, or ends it. Nothing of it is read until then: what the client sends waits
   * within the window of the stream. In plain text, and without `XDS_AUTH`, it is handed on at once without a caller.
   */
  open(stream: GrpcStream, take: (caller: Caller | undefined) => void): void {
    if (!stream.isSecure || !this.#parts.authenticates) return take(undefined)
    const admitted = this.#parts.admission.admit(stream)
    if (!(admitted instanceof Promise)) return this.#decide(stream, admitted, take)
    let isOver = false
    stream.onClose(() => (isOver = true))
    void admitted.then((answer) => {
      if (!isOver) this.#decide(stream, answer, take)
    })
  }

  /** Holds a proxy's node to its caller; undefined for one without. Returns the reason when it may not act for the node. */
  refusal(connection: Connection, node: ProxyNode): string | undefined {
    const { caller } = connection
    if (!caller || !this.#parts.checksNode) return undefined
    const checked = checkNode(caller, node)
    if ('verified' in checked) connection.verifiedIdentity = checked.verified
    else this.#refused.inc({ reason: 'identity' })
    return 'refused' in checked ? checked.refused : undefined
  }

  /** The ledger can be told of streams from now on: of these first, which are open. */
  linked(ledger: Peer<IdentityEvent>, open: Iterable<Connection>): void {
    this.#ledger = ledger
    for (const connection of open) this.connected(connection)
  }

  /** A proxy has said who it is. */
  connected({ id, caller, node }: Connection): void {
    this.#ledger?.tell({ type: 'IdentityConnected', connection: id, caller, node: node?.id ?? '' }, id)
  }

  /** A proxy's stream is over. */
  gone({ id }: Connection): void {
    this.#ledger?.tell({ type: 'IdentityGone', connection: id }, id)
  }

  #decide(stream: GrpcStream, admitted: Admitted, take: (caller: Caller) => void): void {
    if (isRefused(admitted)) {
      this.#refused.inc({ reason: 'authentication' })
      this.#parts.warn(`unauthenticated|${stream.peer}`, `stream from ${stream.peer} refused: ${admitted.message}: ${admitted.reason}`)
      return stream.end(admitted.code, admitted.message)
    }
    // The connection sees to the end of a certificate.
    if (admitted.via === 'token') {
      this.#ends.set(stream, endOfCredential(admitted.expiresAt, this.#parts.grace, randomInt(1000) / 1000))
      stream.onClose(() => this.#ends.delete(stream))
    }
    take(admitted)
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
