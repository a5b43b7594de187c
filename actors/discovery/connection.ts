/** One XDS connection of a writer. */
import type { ProxyNode } from '../../protocols/data.ts'
import { responseFrame } from '../../src/xds/session/frames.ts'
import type { Rejection, Response, XdsSession } from '../../src/xds/session/session.ts'
import type { Timer } from '../runtime/timers.ts'
import type { GrpcStream } from './grpc-server.ts'

/** A stream with its session and where its pushes stand. Times are Unix milliseconds, 0 = none. */
export interface Connection {
  id: string
  node: ProxyNode | undefined
  readonly session: XdsSession
  readonly stream: GrpcStream
  readonly connectedAt: number
  /** Whether its class is known, so that requests can be answered. */
  answered: boolean
  /** Whether it has not been sent anything yet. */
  newcomer: boolean
  /** Whether a response is on its way out. */
  sending: boolean
  /** Whether it holds a permit of the throttle. */
  permit: boolean
  /** First change that waits to be pushed. */
  changedAt: number
  /** First change of the push under way. */
  pushedSince: number
  heldTimer: Timer | undefined
  /** The last long list of names, as long as anything else keeps it; the next request is likely to repeat it. */
  lastList?: WeakRef<Buffer>
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
    at: Date.now(),
  })
  if (connection.rejections.length > keptRejections) connection.rejections.shift()
}

/** Writes a response. `done` hears when it has left, or why it has not: closed, or not taken within `timeoutMs`. */
export function sendResponse(
  connection: Connection,
  response: Response,
  timeoutMs: number,
  done: (failure: 'closed' | 'timeout' | undefined) => void,
): void {
  let settled = false
  const settle = (failure: 'closed' | 'timeout' | undefined) => {
    if (settled) return
    settled = true
    clearTimeout(timer)
    done(failure)
  }
  const timer = timeoutMs > 0 ? setTimeout(() => settle('timeout'), timeoutMs) : undefined
  connection.stream.write(responseFrame(response, connection.session.delta), (failed) => settle(failed ? 'closed' : undefined))
}
