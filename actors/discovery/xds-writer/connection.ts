/** One XDS connection of a writer. */

import type { ProxyNode } from '../../../protocols/data.ts'
import type { Caller } from '../../../protocols/messages/identity.ts'
import type { XdsSession } from '../../../src/xds/stream/session.ts'
import type { Rejection } from '../../../src/xds/stream/watch.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Timer } from '../../runtime/timers.ts'

/** A response on its way out. */
export interface Sending {
  readonly bytes: number
  /** Milliseconds it has been under way, as far as this thread was not blocked, and without those it waited for a permit. */
  elapsedMs: number
  /** Milliseconds it waited for a permit, half sent. */
  pausedMs: number
}

/** A stream with its session and where its pushes stand. Times are monotonic milliseconds, 0 = none. */
export interface Connection {
  id: string
  /** Number of the transport connection within the writer. */
  transport: number
  node: ProxyNode | undefined
  /** What the node counts for in the budget of the transport connection. */
  nodeBytes: number
  /** Who opened the stream; undefined in plain text, and where nobody is authenticated. */
  readonly caller: Caller | undefined
  /** The identity of the caller that may act for the node (docs/identity.md, I4). */
  verifiedIdentity: string | undefined
  readonly session: XdsSession
  readonly stream: GrpcStream
  /** Unix milliseconds. */
  readonly connectedAt: number
  /** Whether its class is known, so that requests can be answered. */
  answered: boolean
  /** Whether it has shown that it reads: it passed its trial, and was not slow since (docs/resources.md, Q2). */
  trusted: boolean
  /** The response on its way out. */
  sending: Sending | undefined
  /** Whether it is being pushed to: on trial, with a permit of the throttle, or without one because it is slow. */
  pushing: boolean
  /** First change that waits to be pushed. */
  changedAt: number
  /** First change of the push under way. */
  pushedSince: number
  heldTimer: Timer | undefined
  /** The last refused responses, newest last. */
  readonly rejections: Rejection[]
}

/** Refused responses kept a connection. */
const keptRejections = 20

/** Remembers a refusal. */
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
