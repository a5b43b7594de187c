/**
 * Unary gRPC calls of the agent, each on a connection of its own (docs/decisions.md): their deadlines, the names of a method, and what a
 * server says about the delay before a call is repeated. A call that is repeated until it succeeds is a `Renewal`.
 */
import type { ClientHttp2Session, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2'
import { callEnd } from '../../src/agent/call-end.ts'
import type { FailureTerms } from '../../src/model/back-off.ts'
import { status } from '../../src/model/status-codes.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../../src/xds/stream/frames.ts'
import { deadlineAfter } from '../runtime/timers.ts'
import { reasonOf } from './credentials/http2-client.ts'

/** A failed call: the gRPC status, and the minimum delay before a retry that the server asks for, in milliseconds. */
export class CallFailed extends Error {
  readonly code: number
  readonly retryAfterMs: number
  constructor(code: number, message: string, retryAfterMs = 0) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** A method: its names, `/<service>/<method>`, in the order of attempts. The one that a server implemented last comes first from then on. */
export class UnaryMethod {
  #paths: readonly string[]

  constructor(...paths: readonly string[]) {
    this.#paths = paths
  }

  /** Attempts a call by each name until the server implements it. */
  async attempt<Answer>(call: (path: string) => Promise<Answer>): Promise<Answer> {
    for (let left = this.#paths.length - 1; ; left--) {
      const path = this.#paths[0] as string
      try {
        return await call(path)
      } catch (error) {
        if (left === 0 || !(error instanceof CallFailed) || error.code !== status.unimplemented) throw error
        this.#paths = [...this.#paths.slice(1), path]
      }
    }
  }
}

/** A call. */
export interface UnaryCall<Answer> {
  readonly method: UnaryMethod
  /** The metadata. */
  readonly headers: OutgoingHttpHeaders
  /** The encoded request. */
  readonly message: Uint8Array
  /** Maximum size of the answer, in bytes. */
  readonly answerBytes: number
  /** The timeout, connecting included, in whole seconds, which the server is told. Undefined: as long as `signal` says. */
  readonly seconds?: number
  /** Ends the call when it is aborted. */
  readonly signal?: AbortSignal
  /** Opens the connection. */
  connect(): ClientHttp2Session
  /** Decodes the answer. Errors thrown fail the call. The buffer is valid during the call only. */
  read(message: Buffer): Answer
}

/** Resolves with the decoded answer; rejects with {@link CallFailed}. The connection is gone afterwards. */
export function callUnary<Answer>(call: UnaryCall<Answer>): Promise<Answer> {
  return call.method.attempt((path) => callPath(path, call))
}

function callPath<Answer>(path: string, call: UnaryCall<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let session: ClientHttp2Session | undefined
    const { seconds = Number.POSITIVE_INFINITY, signal } = call
    const fail = (failure: CallFailed) => done(() => reject(failure))
    const limit = deadlineAfter(seconds * 1000, () => fail(new CallFailed(status.deadlineExceeded, `no answer within ${seconds} s`)))
    const leave = () => fail(new CallFailed(status.canceled, 'given up'))
    const done = (settle: () => void) => {
      limit.cancel()
      signal?.removeEventListener('abort', leave)
      session?.destroy()
      settle()
    }
    signal?.addEventListener('abort', leave)
    if (signal?.aborted) return leave()
    const failed = (error: unknown) => fail(failureOf(error))
    try {
      session = call.connect()
      session.on('error', failed)
      session.on('close', () => fail(new CallFailed(status.unavailable, 'the connection was closed before a response arrived')))
      send(session, path, call, (outcome) => (outcome instanceof CallFailed ? fail(outcome) : done(() => resolve(outcome.answer))))
    } catch (error) {
      failed(error)
    }
  })
}

type Outcome<Answer> = CallFailed | { readonly answer: Answer }

function send<Answer>(session: ClientHttp2Session, path: string, call: UnaryCall<Answer>, done: (outcome: Outcome<Answer>) => void): void {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(call.seconds === undefined ? {} : { 'grpc-timeout': `${call.seconds}S` }),
    ...call.headers,
  })
  const reader = new FrameReader(call.answerBytes, new FrameBuffers())
  let read: { readonly answer: Answer } | undefined
  let trailers: IncomingHttpHeaders | undefined
  stream.on('response', (headers) => {
    // A response without messages has its status in the headers (Trailers-Only).
    if (headers['grpc-status'] !== undefined) trailers = headers
    else if (headers[':status'] !== 200) done(httpFailure(headers[':status']))
  })
  stream.on('trailers', (headers) => {
    trailers = headers
  })
  stream.on('data', (bytes: Buffer) => {
    try {
      reader.take(bytes, (message) => (read = { answer: call.read(message) }))
    } catch (error) {
      done(new CallFailed(status.internal, `the answer cannot be read: ${(error as Error).message}`))
    }
  })
  stream.on('error', (error) => done(failureOf(error)))
  stream.on('close', () => done(outcomeOf(read, trailers)))
  stream.end(messageFrame(call.message))
}

/** HTTP status 404 means that the method does not exist (gRPC, "HTTP to gRPC Status Code Mapping"). */
function httpFailure(code: number | undefined): CallFailed {
  return new CallFailed(code === 404 ? status.unimplemented : status.unavailable, `answered with HTTP status ${code}`)
}

function failureOf(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed(status.unavailable, reasonOf(error))
}

function outcomeOf<Answer>(read: { readonly answer: Answer } | undefined, trailers: IncomingHttpHeaders | undefined): Outcome<Answer> {
  if (!trailers) return new CallFailed(status.unavailable, 'the call ended without a status')
  const { code, message, retryAfterMs } = callEnd(trailers)
  if (code !== status.ok) return new CallFailed(code, message, retryAfterMs)
  return read ?? new CallFailed(status.internal, 'the answer has no message')
}

/** Returns what a failure says about the delay before the call is repeated. */
export const termsOf = (error: Error): FailureTerms => (error instanceof CallFailed ? { askedMs: error.retryAfterMs } : {})
