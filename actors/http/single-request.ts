/** The client of HTTP/1: single requests, each on a connection of its own, bounded in time and size. */
// biome-ignore lint/style/noRestrictedImports: the one place that sends requests
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http'
import { urlToHttpOptions } from 'node:url'
import { deadlineAfter } from '../runtime/timers.ts'
import { BodyTooLarge, boundedBody } from './bounded-body.ts'

/** A request. `timeout` is the longest standstill of its connection in milliseconds. */
export interface SingleRequest extends Omit<RequestOptions, 'agent' | 'signal'> {
  /** In place of host, port and path. */
  readonly url?: URL
  readonly body?: string | undefined
  /** The `request` of `node:https`, for TLS (`httpsClient`). Without it the request is in plain text. */
  readonly request?: typeof httpRequest
}

/** A whole response. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** The maximum size of a response to a command, in bytes: about as much as a string can have. */
export const mostBytes = 500_000_000

/** The bounds of a whole response. */
export interface AnswerBounds {
  /** From the beginning of the request to the end of the response, in milliseconds. Infinite: `timeout` of the request alone. */
  readonly ms: number
  /** The maximum size of the body. */
  readonly bytes: number
}

/**
 * Sends a request. Resolves with the response when its headers have arrived; the caller reads or destroys it. Rejects with the error of
 * the connection, for 101 (protocol upgrade), which Node reports neither as a response nor as an error, and when the signal is aborted.
 */
export function send({ url, body, request = httpRequest, ...options }: SingleRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const to = url ? urlToHttpOptions(url) : {}
  const connection = options.createConnection ? {} : { agent: false }
  return new Promise((resolve, reject) => {
    let arrived: IncomingMessage | undefined
    const outgoing = request({ ...to, ...options, ...connection, signal }, (response) => {
      arrived = response
      resolve(response)
    })
    // A response whose request is destroyed may end as if it were complete.
    outgoing.on('timeout', () => (arrived ?? outgoing).destroy(new Error(`no answer within ${options.timeout} ms`)))
    outgoing.on('error', reject)
    outgoing.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error('HTTP status 101'))
    })
    if (body !== undefined) outgoing.setHeader('content-length', Buffer.byteLength(body))
    outgoing.end(body)
  })
}

/** Sends a request and resolves with the whole response. Rejects as {@link send} and {@link within}, and for a body that is too large. */
export function ask(request: SingleRequest, { ms, bytes }: AnswerBounds): Promise<Answer> {
  return within(ms, undefined, async (signal) => {
    const response = await send(request, signal)
    const body = await boundedBody(response, bytes).catch((error: unknown) => {
      throw error instanceof BodyTooLarge ? new Error(`the answer is longer than ${bytes} bytes`) : error
    })
    return { status: response.statusCode ?? 0, headers: response.headers, body }
  })
}

/**
 * Runs an operation with a signal that is aborted after `ms` milliseconds (never when infinite) and when `gone` is aborted. Rejects with
 * the reason of the abort.
 */
export async function within<T>(ms: number, gone: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController()
  const leave = () => end.abort(new Error('the caller no longer waits for the answer'))
  const timer = Number.isFinite(ms) ? deadlineAfter(ms, () => end.abort(new Error(`no answer within ${ms} ms`))) : undefined
  gone?.addEventListener('abort', leave)
  if (gone?.aborted) leave()
  try {
    const result = await run(end.signal)
    end.signal.throwIfAborted()
    return result
  } catch (error) {
    throw end.signal.aborted ? end.signal.reason : error
  } finally {
    timer?.cancel()
    gone?.removeEventListener('abort', leave)
  }
}

/** Returns the message of an error. When both address families were tried, that of the first. */
export function reasonOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? error.errors : [error]
  return first instanceof Error ? first.message || first.name : String(first)
}
