/** Single calls: one message of the client, one answer. */
import { randomInt } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { deadlineAfter } from '../runtime/timers.ts'
import type { GrpcStream } from './grpc-stream.ts'

/** What is known of a call beside its message. */
export interface Call {
  /** Address of the client, for messages. It says nothing of who the client is. */
  readonly peer: string
  /** The metadata of the call. */
  readonly headers: IncomingHttpHeaders
  /** Whether it came over TLS. */
  readonly isSecure: boolean
  /** Whether both ends of its connection have loopback addresses. */
  readonly isLocal: boolean
  /** Who has presented a client certificate that is valid and trusted at present; undefined in plain text. */
  readonly certificateCaller: Caller | undefined
  /** The same object for all calls of a connection. */
  readonly connection: object
  /** Aborted when nobody waits for the answer any more: the client has gone, or the time is over. */
  readonly signal: AbortSignal
}

/** An answer that is an error, with its gRPC code. */
export interface CallStatus {
  readonly code: number
  readonly message: string
  /** When the call is worth another try, in milliseconds from now; the client is told. */
  readonly retryAfterMs?: number
}

/**
 * Answers a call with the encoded message or a status. The request is the encoded message of the client. What it throws is logged,
 * and answered with `Internal` without a reason.
 */
export type AnswerCall = (request: Buffer, call: Call) => Promise<Uint8Array | CallStatus> | Uint8Array | CallStatus

/** Bounds of a method. */
export interface CallBounds {
  /** Longest time from the first byte of a call to its answer, in milliseconds; a client may set a shorter one (`grpc-timeout`). */
  readonly timeLimit: number
  /** Largest message of a client, in bytes. */
  readonly requestBytes: number
  /**
   * Calls at a time on one server, counted until their answers are there, wanted or not. For one more, the oldest call whose message
   * has not come gives way; where there is none, the new call does. Whoever gives way gets `ResourceExhausted`, and is told when to try again.
   */
  readonly concurrent: number
}

/** A method of single calls. */
export interface UnaryMethod {
  readonly type: 'unary'
  readonly bounds: CallBounds
  readonly answer: AnswerCall
}

/** When a call that had no room is worth another try, in milliseconds: spread, so that those who were turned away together do not come back together. */
const retryMs = (): number => 500 + randomInt(1000)

/** Takes the streams of a method of single calls. `failed` hears what the answering function threw. */
export function unaryStreams({ bounds, answer }: UnaryMethod, failed: (error: unknown) => void): (stream: GrpcStream) => void {
  let running = 0
  /** Ends calls whose messages have not come, oldest first. */
  const incoming = new Set<(code: number, message: string, retryAfterMs?: number) => void>()
  return (stream) => {
    const clientLimit = clientTimeLimit(stream.headers['grpc-timeout'])
    if (clientLimit === undefined) return stream.end(status.invalidArgument, 'grpc-timeout cannot be read')
    const tooMany = `more than ${bounds.concurrent} calls at a time`
    const [oldest] = incoming
    if (running >= bounds.concurrent) oldest?.(status.resourceExhausted, tooMany, retryMs())
    if (running >= bounds.concurrent) return stream.end(status.resourceExhausted, tooMany, retryMs())
    running++
    let request: Buffer | undefined
    const waiting = new AbortController()
    const refuse = (code: number, message: string, retryAfterMs?: number) => {
      if (incoming.delete(refuse)) running--
      waiting.abort()
      stream.end(code, message, retryAfterMs)
    }
    incoming.add(refuse)
    const limit = deadlineAfter(Math.min(clientLimit, bounds.timeLimit), () => refuse(status.deadlineExceeded, 'the time for the call is over'))
    stream.onBorrowed((message) => {
      if (request) refuse(status.unimplemented, 'the method takes one message')
      else request = Buffer.from(message)
    })
    stream.onEnd(async () => {
      if (waiting.signal.aborted || stream.status !== undefined) return
      if (!request) return refuse(status.unimplemented, 'the method takes one message, and none came')
      incoming.delete(refuse)
      const { peer, headers, isSecure, isLocal, certificateCaller, connection } = stream
      const call = { peer, headers, isSecure, isLocal, certificateCaller, connection, signal: waiting.signal }
      const answered = await answerOf(answer, request, call, failed)
      running--
      limit.cancel()
      if (waiting.signal.aborted) return
      if (answered instanceof Uint8Array) stream.write([messageFrame(answered)], (isLost) => isLost || stream.end(status.ok, ''))
      else stream.end(answered.code, answered.message, answered.retryAfterMs)
    })
    stream.onClose(() => {
      limit.cancel()
      waiting.abort()
      if (incoming.delete(refuse)) running--
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

/** Milliseconds of the header `grpc-timeout`: at most eight digits and a unit. Infinite without one, undefined when it cannot be read. */
function clientTimeLimit(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined) return Number.POSITIVE_INFINITY
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? []
  return digits === undefined ? undefined : Number(digits) * (unitMs[unit as string] as number)
}
