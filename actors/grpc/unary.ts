/** Unary calls: one request message, one answer. */
import { randomInt } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'
import { clientKey } from '../../src/model/client-address.ts'
import { FairSlots } from '../../src/model/fair-slots.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { deadlineAfter } from '../runtime/timers.ts'
import type { GrpcStream } from './grpc-stream.ts'

/** The properties of a call other than its message. */
export interface Call {
  /** Address of the client, for log lines; not an identity. */
  readonly peer: string
  /** The metadata of the call. */
  readonly headers: IncomingHttpHeaders
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean
  /** Whether both ends of the connection have loopback addresses. */
  readonly isLocal: boolean
  /** The ends of the connection: the same object for all of its calls. */
  readonly ends: ConnectionEnds
  /** The caller by client certificate, if that is valid and trusted at present; undefined in plain text. */
  readonly certificateCaller: Caller | undefined
  /** Identifies the connection: the same object for all of its calls. */
  readonly connection: object
  /** Aborted when the answer is no longer needed: the client is gone, or the deadline has passed. */
  readonly signal: AbortSignal
  /** What is left until the deadline, in milliseconds. */
  restMs(): number
}

/** An error answer with its gRPC code. */
export interface CallStatus {
  readonly code: number
  readonly message: string
  /** Retry delay for the client, in milliseconds. */
  readonly retryAfterMs?: number
}

/**
 * Answers an encoded request with an encoded message or a status. Errors thrown are logged, and answered with `Internal` without a
 * reason.
 */
export type AnswerCall = (request: Buffer, call: Call) => Promise<Uint8Array | CallStatus> | Uint8Array | CallStatus

/** Limits of a method. */
export interface CallBounds {
  /** Maximum time from the first byte of a call to its answer, in milliseconds; a client may set a shorter one (`grpc-timeout`). */
  readonly timeLimit: number
  /** Maximum size of a request message, in bytes. */
  readonly requestBytes: number
  /**
   * Maximum number of concurrent calls on one server, each counted until its answer is made, even if the client is gone. When a call
   * exceeds it, a call of the client with the most gives way: the oldest whose message has not arrived, or else the oldest. The new call is
   * refused instead if all messages of that client have arrived and the client of the new call has as many calls with it. A refused call
   * gets `ResourceExhausted` with a retry delay. At most as many calls that gave way go on until their answers are made.
   */
  readonly concurrent: number
}

/** A unary method. */
export interface UnaryMethod {
  readonly type: 'unary'
  readonly bounds: CallBounds
  readonly answer: AnswerCall
}

/**
 * Retry delay of a call refused for lack of capacity, in milliseconds: randomized, so that clients refused together do not retry
 * together.
 */
const retryMs = (): number => 500 + randomInt(1000)

/** A call that counts. */
interface Running {
  /** Its client ({@link clientKey}). */
  readonly client: string
  /** Ends it with a status. */
  refuse(code: number, message: string, retryAfterMs?: number): void
  /** Whether its message has arrived. */
  isAnswering: boolean
  /** Whether it gave way to another call. */
  hasLeft: boolean
}

/** Returns the function that handles the streams of a unary method. `failed` is called with errors thrown by `answer`. */
export function unaryStreams({ bounds, answer }: UnaryMethod, failed: (error: unknown) => void): (stream: GrpcStream) => void {
  /** The calls that count; those whose message has arrived are busy. */
  const slots = new FairSlots<Running>(bounds.concurrent, bounds.concurrent)
  /** The number of calls that gave way and whose answers are being made. */
  let abandoned = 0
  const tooMany = `more than ${bounds.concurrent} concurrent calls of this method`
  /** Gives a call a slot. Returns whether it got one. */
  const enter = (call: Running): boolean => {
    const leaving = slots.leavingFor(call.client)
    const isGreedy = leaving !== undefined && slots.countOf(leaving.client) > slots.countOf(call.client) + 1
    if (leaving?.isAnswering && (!isGreedy || abandoned >= bounds.concurrent)) return false
    slots.take(call.client, call)
    if (leaving?.isAnswering) abandoned++
    if (leaving) leaving.hasLeft = true
    leaving?.refuse(status.resourceExhausted, tooMany, retryMs())
    return true
  }
  return (stream) => {
    const clientLimit = clientTimeLimit(stream.headers['grpc-timeout'])
    if (clientLimit === undefined) return stream.end(status.invalidArgument, 'the header grpc-timeout is invalid')
    let request: Buffer | undefined
    const waiting = new AbortController()
    const refuse = (code: number, message: string, retryAfterMs?: number) => {
      if (!own.isAnswering) slots.release(own)
      waiting.abort()
      stream.end(code, message, retryAfterMs)
    }
    const own: Running = { client: clientKey(stream.peer), refuse, isAnswering: false, hasLeft: false }
    if (!enter(own)) return stream.end(status.resourceExhausted, tooMany, retryMs())
    const limitMs = Math.min(clientLimit, bounds.timeLimit)
    const until = monotonicMs() + limitMs
    const limit = deadlineAfter(limitMs, () => refuse(status.deadlineExceeded, 'the deadline of the call was exceeded'))
    stream.onBorrowed((message) => {
      if (request) refuse(status.unimplemented, 'the method is unary: it takes exactly one request message')
      else request = Buffer.from(message)
    })
    stream.onEnd(async () => {
      if (waiting.signal.aborted || stream.status !== undefined) return
      if (!request) return refuse(status.unimplemented, 'the method is unary: no request message was received')
      own.isAnswering = true
      slots.mark(own, true)
      const { peer, headers, isSecure, isLocal, ends, certificateCaller, connection } = stream
      const call = {
        peer,
        headers,
        isSecure,
        isLocal,
        ends,
        certificateCaller,
        connection,
        signal: waiting.signal,
        restMs: () => Math.max(0, until - monotonicMs()),
      }
      const answered = await answerOf(answer, request, call, failed)
      slots.release(own)
      if (own.hasLeft) abandoned--
      limit.cancel()
      if (waiting.signal.aborted) return
      if (answered instanceof Uint8Array) stream.write([messageFrame(answered)], (isLost) => isLost || stream.end(status.ok, ''))
      else stream.end(answered.code, answered.message, answered.retryAfterMs)
    })
    stream.onClose(() => {
      limit.cancel()
      waiting.abort()
      if (!own.isAnswering) slots.release(own)
    })
  }
}

async function answerOf(answer: AnswerCall, request: Buffer, call: Call, failed: (error: unknown) => void): Promise<Uint8Array | CallStatus> {
  try {
    return await answer(request, call)
  } catch (error) {
    failed(error)
    return { code: status.internal, message: 'internal error' }
  }
}

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 }

/**
 * Parses the header `grpc-timeout` (at most eight digits and a unit) into milliseconds. Infinite without the header; undefined when it is
 * invalid.
 */
function clientTimeLimit(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined) return Number.POSITIVE_INFINITY
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? []
  return digits === undefined ? undefined : Number(digits) * (unitMs[unit as string] as number)
}
