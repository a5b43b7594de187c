/** Answers reviews with the handler of their path, within their time (docs/operation.md, W2 and W3). */
import type { ReviewCall, ReviewReply } from '../../../protocols/messages/admission.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { readReview, reviewText, unreadText } from '../../../src/orchestrator/admission-review.ts'
import type { Asking } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { type AdmissionCall, type AdmissionHandler, type Admitted, Busy, largeBytes } from './admission-handler.ts'

/** The most reviews that are answered at a time. What a handler does at once does not count. */
const mostAtOnce = 64

/** The answers to reviews. */
export class Admissions {
  readonly #handlers: readonly AdmissionHandler[]
  readonly #log: ScopedLogger
  readonly #lines = new LineBounds()
  #underWay = 0

  constructor(handlers: readonly AdmissionHandler[], log: ScopedLogger) {
    this.#handlers = handlers
    this.#log = log
  }

  /** A request for a path was refused before it was a review. */
  refused(path: string, status: number): void {
    this.#find(path)?.handler.refused?.(status)
  }

  /** The number of reviews that are being answered. */
  get underWay(): number {
    return this.#underWay
  }

  /** Answers a review. Never rejects. */
  async answer({ path, body }: ReviewCall, asking: Asking): Promise<ReviewReply> {
    const found = this.#find(path)
    if (!found) return plain(404, `there is no webhook ${path.slice(0, 200)}`)
    const { handler, rest } = found
    const refuse = (status: number, reason: string) => {
      handler.refused?.(status)
      return plain(status, reason)
    }
    if (this.#underWay >= mostAtOnce) return refuse(503, `${mostAtOnce} reviews are being answered: this one is one too many`)
    this.#underWay++
    try {
      const call = { rest, asking }
      return { status: 200, type: 'application/json', body: await this.#answered(handler, body, call) }
    } catch (error) {
      // What ended is the time of a large review, whose uid is not known here.
      if (asking.signal.aborted) return refuse(504, 'the review was not answered in time')
      if (error instanceof Busy) return refuse(503, error.message)
      this.#failed(path, error)
      return refuse(500, 'internal error')
    } finally {
      this.#underWay--
    }
  }

  async #answered(handler: AdmissionHandler, body: Uint8Array, call: AdmissionCall): Promise<string> {
    if (body.length > largeBytes && handler.admitLarge) return inTime(handler.admitLarge(body, call), call.asking)
    const review = readReview(body)
    if ('fault' in review) {
      handler.unread?.()
      return unreadText(review)
    }
    const { apiVersion, request } = review
    const admitted = await this.#admitted(() => handler.admit(request, call), call)
    if (admitted !== 'long') return reviewText(apiVersion, request.uid, admitted)
    if (!handler.admitLarge) throw new Error('the handler has no thread for what takes long')
    return inTime(handler.admitLarge(body, call), call.asking)
  }

  async #admitted(admit: () => Admitted | Promise<Admitted>, { asking, rest }: AdmissionCall): Promise<Admitted> {
    try {
      const answer = admit()
      return answer instanceof Promise ? await inTime(answer, asking) : answer
    } catch (error) {
      if (asking.signal.aborted) return { allowed: false, code: 504, message: 'the review was not answered in time' }
      if (error instanceof Busy) throw error
      this.#failed(rest, error)
      return { allowed: false, code: 500, message: 'internal error' }
    }
  }

  #find(path: string): { readonly handler: AdmissionHandler; readonly rest: string } | undefined {
    for (const handler of this.#handlers)
      for (const own of handler.paths) {
        if (path === own || path === `${own}/`) return { handler, rest: '' }
        if (handler.takesMore && path.startsWith(`${own}/`)) return { handler, rest: path.slice(own.length + 1) }
      }
    return undefined
  }

  #failed(path: string, error: unknown): void {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    if (this.#lines.take('failed', monotonicMs()) !== 'no') this.#log.error(`a review (${path.slice(0, 200)}) failed: ${reason}`)
  }
}

const plain = (status: number, body: string): ReviewReply => ({ status, type: 'text/plain; charset=utf-8', body })

/** Resolves or rejects as the answer does, and rejects when nobody waits for it any more. */
function inTime<T>(answer: Promise<T>, { signal }: Asking): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const late = () => reject(signal.reason)
  if (signal.aborted) late()
  signal.addEventListener('abort', late)
  answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', late))
  return promise
}
