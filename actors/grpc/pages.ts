/** Pages on the port of a gRPC server: HTTP/2 requests over TLS with short answers. */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { PageReply } from '../../protocols/messages/pages.ts'
import { deadlineAfter } from '../runtime/timers.ts'

/** A request for a page. */
export interface PageCall {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Address of the client, for log lines. */
  readonly peer: string
  readonly isSecure: boolean
  /** The caller by client certificate, if that is valid and trusted at present. */
  readonly certificateCaller: Caller | undefined
  /** Identifies the connection: the same object for all requests on it. */
  readonly connection: object
}

/** An answer without a body that refuses a request. */
export type PageRefusal = Pick<PageReply, 'status' | 'headers'>

/** Decides on a request: returns a refusal, or a function that makes the page. Errors thrown are logged and answered with 500. */
export type AnswerPage = (call: PageCall) => Promise<PageRefusal | (() => Promise<PageReply>)>

/**
 * Maximum number of pages that a server makes and sends at a time; further requests are answered with 503. Refusals are not counted, so
 * that unauthorized clients cannot use up the limit.
 */
const maxPages = 8
/** How long a client may take to read an answer, and then to end its request, in milliseconds; then the stream is reset. */
const limits = { readMs: 60_000, endMs: 1000 }
const noError = 0
const cancel = 8

/** Serves pages. Request bodies are not read. */
export class GrpcPages {
  readonly #answer: AnswerPage
  readonly #failed: (error: unknown) => void
  #open = 0

  /** `failed` is called with errors thrown by `answer`. */
  constructor(answer: AnswerPage, failed: (error: unknown) => void) {
    this.#answer = answer
    this.#failed = failed
  }

  /** Answers a request on its open stream. */
  async serve(stream: ServerHttp2Stream, call: PageCall): Promise<void> {
    stream.resume()
    try {
      const page = await this.#answer(call)
      if (typeof page !== 'function') return refuse(stream, page)
      if (this.#open >= maxPages) return refuse(stream, { status: 503, headers: {} })
      this.#open++
      let isCounted = true
      const sent = () => {
        if (isCounted) this.#open--
        isCounted = false
      }
      stream.once('close', sent)
      if (isGone(stream)) return sent()
      send(stream, call.method, await page(), sent)
    } catch (error) {
      this.#failed(error)
      refuse(stream, { status: 500, headers: {} })
    }
  }
}

const isGone = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed

/** Answers with headers only, which are not subject to flow control, so that nothing has to be buffered for the client. */
function refuse(stream: ServerHttp2Stream, { status, headers }: PageRefusal): void {
  if (isGone(stream)) return
  stream.respond({ ':status': status, ...headers }, { endStream: true })
  endSoon(stream)
}

/** Ends the stream even if the client does not close its side. */
function endSoon(stream: ServerHttp2Stream): void {
  const limit = deadlineAfter(limits.endMs, () => stream.close(noError))
  stream.once('close', () => limit.cancel())
}

/** Sends an answer; `sent` is called when all of it was sent. */
function send(stream: ServerHttp2Stream, method: string, { status, headers, body }: PageReply, sent: () => void): void {
  if (isGone(stream)) return
  const limit = deadlineAfter(limits.readMs, () => stream.close(cancel))
  stream.once('finish', () => {
    sent()
    limit.cancel()
    if (!isGone(stream)) endSoon(stream)
  })
  stream.once('close', () => limit.cancel())
  stream.respond({ ':status': status, 'content-type': 'text/plain; charset=utf-8', ...headers, 'content-length': Buffer.byteLength(body) })
  stream.end(method === 'HEAD' ? undefined : body)
}
