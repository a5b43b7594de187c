/** One XDS connection of a writer. */

import type { ProxyNode } from '../../../protocols/data.ts'
import type { Caller } from '../../../protocols/messages/identity.ts'
import type { Turn } from '../../../src/push/pacing/budget.ts'
import type { XdsSession } from '../../../src/xds/stream/session.ts'
import type { Rejection } from '../../../src/xds/stream/watch.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Timer } from '../../runtime/timers.ts'

/** A response that is being sent. */
export interface Sending {
  readonly bytes: number
  /** Milliseconds since the start, without the time during which this thread was blocked and without `pausedMs`. */
  elapsedMs: number
  /** Milliseconds during which the half-sent response waited for a permit. */
  pausedMs: number
}

/** An XDS stream with its session and the state of its pushes. Times are monotonic milliseconds; 0 means none. */
export interface Connection {
  id: string
  /** Number of the transport connection within the writer. */
  transport: number
  node: ProxyNode | undefined
  /** Bytes that the node takes from the budget of the transport connection. */
  nodeBytes: number
  /** The authenticated caller; undefined in plain text and where authentication is off. */
  readonly caller: Caller | undefined
  /** The identity of the caller that may act for the node (docs/identity.md, I4). */
  verifiedIdentity: string | undefined
  readonly session: XdsSession
  readonly stream: GrpcStream
  /** Time of connection, in Unix milliseconds. */
  readonly connectedAt: number
  /** Whether the class is known, so that requests can be answered. */
  isClassKnown: boolean
  /** Its place in the budget of pushes. */
  readonly turn: Turn
  /** The response that is being sent. */
  sending: Sending | undefined
  /** Time of the first change that has not been pushed. */
  changedAt: number
  /** Time of the first change in the push under way. */
  pushedSince: number
  heldTimer: Timer | undefined
  /** The last NACKs, newest last. */
  readonly rejections: Rejection[]
}

/** Maximum number of NACKs kept for a connection. */
const keptRejections = 20

/** Records a NACK. */
export function rejectionHistory(connection: Connection, typeUrl: string, error: { code: number; message: string } | undefined): void {
  const watch = connection.session.watches.get(typeUrl)
  connection.rejections.push({
    typeUrl,
    nonce: watch?.nonce ?? '',
    version: watch?.version ?? '',
    code: error?.code ?? 0,
    message: error?.message ?? '',
    at: wallClockMs(),
  })
  if (connection.rejections.length > keptRejections) connection.rejections.shift()
}
