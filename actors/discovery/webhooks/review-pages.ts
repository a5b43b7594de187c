/** The pages that receive reviews, over TLS on the thread of the webhooks, or in plain text on the main thread (docs/operation.md, W1 and W2). */
import type { ReviewCall, ReviewReply } from '../../../protocols/messages/admission.ts'
import { parseDuration } from '../../../src/config/duration.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { reviewLimits } from '../../../src/orchestrator/admission-review.ts'
import { Page, type PageRequest, type PageServer, Refused } from '../../http/page-server.ts'
import type { Asking } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

/** The paths of webhooks, as {@link PageServer.add} has them. */
const paths = ['/inject', '/inject/**', '/validate', '/admitpilot'] as const

/** The most bytes of reviews that are received at a time, of all clients and of one ({@link clientKey}). */
const received = { bytes: 67_108_864, ofClient: 33_554_432 } as const

/**
 * How long a review may take, in milliseconds: what the API server waits, less a share for the way, and at most what is written here. `usual`:
 * where it does not say how long it waits; then it waits ten seconds.
 */
const timeout = { usual: 9000, most: 27_000, least: 100, share: 0.9 } as const

/** What the pages do with reviews. */
export interface ReviewPagesParts {
  /** Answers a review. */
  answer(call: ReviewCall, asking: Asking): Promise<ReviewReply>
  /** Called for each request that is refused before that. */
  refused(path: string, status: number): void
}

/** Adds the pages to a server. */
export function addReviewPages(server: PageServer, parts: ReviewPagesParts): void {
  const budget = new BodyBudget()
  for (const path of paths) server.add(path, { post: (request) => answerRequest(request, budget, parts) })
}

async function answerRequest(request: PageRequest, budget: BodyBudget, parts: ReviewPagesParts): Promise<Page> {
  const { path, query } = request
  const share = budget.shareOf(clientKey(request.connection.remoteAddress))
  try {
    const body = await bodyOf(request, share)
    const {
      status,
      type,
      body: text,
    } = await answerWithin(timeoutOf(query.get('timeout')), request.gone(), (asking) => parts.answer({ path, body }, asking))
    // As bytes it is sent as it is, and not escaped for terminals.
    return new Page(Buffer.from(text), type, status)
  } catch (error) {
    const page = error instanceof Refused ? error.page : new Page('the review could not be answered', undefined, 503)
    parts.refused(path, page.status)
    return page
  } finally {
    share.release()
  }
}

async function bodyOf(request: PageRequest, share: Share): Promise<Uint8Array> {
  const { 'content-length': length, 'transfer-encoding': encoding, 'content-type': type = '' } = request.headers
  const empty = () => new Refused(new Page('the request has no body', undefined, 400))
  if (encoding === undefined && Number(length ?? 0) === 0) throw empty()
  if (type.split(';')[0]?.trim().toLowerCase() !== 'application/json')
    throw new Refused(new Page('the content type must be application/json', undefined, 415))
  const body = await request.bytes(reviewLimits.bytes, (bytes) => {
    if (!share.take(bytes)) throw new Refused(new Page('too many reviews are being received', undefined, 503))
  })
  if (body.length === 0) throw empty()
  return body
}

/** The time for a review, of the parameter with which the API server says how long it waits. */
export function timeoutOf(given: string | null): number {
  const ms = parseDuration(given ?? '')
  if (ms === undefined || ms <= 0) return timeout.usual
  return Math.min(timeout.most, Math.max(timeout.least, ms * timeout.share))
}

async function answerWithin<T>(ms: number, gone: AbortSignal, answer: (asking: Asking) => Promise<T>): Promise<T> {
  const until = monotonicMs() + ms
  const ended = new AbortController()
  const leave = () => ended.abort(gone.reason)
  const timer = deadlineAfter(ms, () => ended.abort(new Error(`not answered within ${ms} ms`)))
  gone.addEventListener('abort', leave)
  if (gone.aborted) leave()
  try {
    return await answer({ signal: ended.signal, restMs: () => Math.max(0, until - monotonicMs()) })
  } finally {
    timer.cancel()
    gone.removeEventListener('abort', leave)
  }
}

/** What one request has of a budget. */
interface Share {
  /** Takes bytes. Returns whether there are any left. */
  take(bytes: number): boolean
  /** Gives back all that was taken. */
  release(): void
}

/** The memory for the bodies of requests: one client can use half of it. */
class BodyBudget {
  readonly #clients = new Map<string, number>()
  #used = 0

  shareOf(client: string): Share {
    let taken = 0
    const add = (bytes: number) => {
      taken += bytes
      this.#used += bytes
      const own = (this.#clients.get(client) ?? 0) + bytes
      if (own === 0) this.#clients.delete(client)
      else this.#clients.set(client, own)
    }
    return {
      take: (bytes) => {
        const own = this.#clients.get(client) ?? 0
        if (this.#used + bytes > received.bytes || own + bytes > received.ofClient) return false
        add(bytes)
        return true
      },
      release: () => add(-taken),
    }
  }
}
