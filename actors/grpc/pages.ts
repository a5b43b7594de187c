/** Pages beside the gRPC methods of a server: plain HTTP/2 requests over TLS, answered whole. */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { PageReply } from '../../protocols/messages/pages.ts'
import { deadlineAfter } from '../runtime/timers.ts'

/** A request for a page. */
export interface PageCall {
  readonly method: string
  /** With the parameters. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Address of the client, for messages. */
  readonly peer: string
  readonly isSecure: boolean
  /** Who has presented a client certificate that is valid and trusted at present. */
  readonly certificateCaller: Caller | undefined
  /** The same object for all that comes on one connection. */
  readonly connection: object
}

/** The answer to who is refused; it has no body. */
export type PageRefusal = Pick<PageReply, 'status' | 'headers'>

/**
 * Answers requests for pages: at once where somebody is refused, else with how the page is made. What it throws is logged and answered
 * with 500.
 */
export type AnswerPage = (call: PageCall) => Promise<PageRefusal | (() => Promise<PageReply>)>

/** Pages that one server makes and sends at a time; one more is answered with 503. Refusals do not count: who is refused takes nobody's turn. */
const mostPages = 8
/** How long a client may take to read an answer, and to end its request once it has it, in milliseconds; then it is reset. */
const limits = { readMs: 60_000, endMs: 1000 }
const noError = 0
const cancel = 8

/** Serves pages. What a client sends beside the headers is not read. */
export class GrpcPages {
  readonly #answer: AnswerPage
  readonly #failed: (error: unknown) => void
  #open = 0

  /** `failed` hears what the answering function threw. */
  constructor(answer: AnswerPage, failed: (error: unknown) => void) {
    this.#answer = answer
    this.#failed = failed
  }

  /** Answers one request, whose stream is open. */
  async serve(stream: ServerHttp2Stream, call: PageCall): Promise<void> {
    stream.resume()
    try {
      const page = await this.#answer(call)
      if (typeof page !== 'function') return refuse(stream, page)
      if (this.#open >= mostPages) return refuse(stream, { status: 503, headers: {} })
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

/** Answers with headers alone, which no window of the client holds up, so that nothing is kept for who is refused. */
function refuse(stream: ServerHttp2Stream, { status, headers }: PageRefusal): void {
  if (isGone(stream)) return
  stream.respond({ ':status': status, ...headers }, { endStream: true })
  endSoon(stream)
}

/** Ends the stream although its client has not ended its half. */
function endSoon(stream: ServerHttp2Stream): void {
  const limit = deadlineAfter(limits.endMs, () => stream.close(noError))
  stream.once('close', () => limit.cancel())
}

/** `sent` hears when the whole answer has left. */
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
