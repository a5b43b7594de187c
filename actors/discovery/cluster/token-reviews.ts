/**
 * Reviews of tokens by the API server, on the main thread, for all writers (docs/identity.md, K7, K11): the answer to `reviewToken`. The number
 * of reviews is bounded, clients take turns, and a verdict is kept for a short time.
 */
import { createHash } from 'node:crypto'
import type { TokenReviewQuestion, TokenVerdict } from '../../../protocols/messages/identity.ts'
import { type ReviewStatus, reviewVerdict } from '../../../src/identity/token-review.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'
import { within } from '../../runtime/timers.ts'
import type { ApiFailure, ClusterApi } from './cluster-api.ts'

/** How many reviews run at a time, of all clients and of one, and how many wait, with the size of their tokens in bytes. */
const bounds = { atOnce: 16, ofClient: 8, waiting: 1024, bytes: 8_388_608 }
/** How long a review may take, in milliseconds. */
export const reviewMs = 5000
/** The largest answer to a review of another cluster, in bytes: it is parsed on the main thread, for whoever names the cluster in a call. */
export const remoteReviewBytes = 1_048_576
/** How long verdicts are kept, in milliseconds. A refusal may be of a token that is about to be valid. */
const keptMs = { accepted: 10_000, refused: 5000 }
/** The number of verdicts that are kept. */
const mostKept = 8192
/** The HTTP statuses with which a server refuses a request because of what is in it. */
const faultsOfTheToken = [400, 413, 422]

/** The API server's part of a review. Rejects with an {@link ApiFailure}. */
export type CreateReview = (token: string, audiences: readonly string[] | undefined) => Promise<ReviewStatus | undefined>

/** Returns the reviews of a cluster. */
export const clusterReviews =
  (api: ClusterApi): CreateReview =>
  async (token, audiences) => {
    const spec = { token, ...(audiences ? { audiences: [...audiences] } : {}) }
    const review = await api.call(
      { verb: 'create', resource: 'tokenreviews.authentication.k8s.io' },
      (library) => library.AuthenticationV1Api,
      (authentication) => authentication.createTokenReview({ body: { spec } }),
    )
    return review.status
  }

/** A review that waits or is under way, for all who ask for it. */
interface Pending {
  readonly verdict: Promise<TokenVerdict>
  readonly signals: AbortSignal[]
}

/** The metrics of reviews, of all clusters. */
export type ReviewMetrics = ReturnType<typeof reviewMetrics>

/** Declares the metrics of reviews. */
export function reviewMetrics(registry: MetricRegistry) {
  const registers = [registry]
  return {
    seconds: new Histogram({
      name: 'pilot_token_review_seconds',
      help: 'seconds until the API server has answered a review of a token',
      labelNames: ['outcome'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    kept: new Counter({
      name: 'pilot_token_reviews_kept_total',
      help: 'tokens that were decided by the verdict of a review shortly before',
      registers,
    }),
  }
}

/** Reviews tokens. */
export class TokenReviews {
  readonly answers: BoundedAnswers<'reviewToken'> = {
    reviewToken: (question, { signal } = patient) => this.#review(question, signal),
  }
  readonly #create: CreateReview
  readonly #log: Logger
  readonly #work = new FairWork(bounds)
  /** By digest of token and audiences. Neither tokens nor audiences are kept. */
  readonly #pending = new Map<string, Pending>()
  /** Verdicts with the monotonic time until which they count, oldest first. */
  readonly #kept = new Map<string, { readonly verdict: TokenVerdict; readonly until: number }>()
  readonly #metrics: ReviewMetrics
  /** Of which cluster, for the log. */
  readonly #of: string
  /** Why the last review could not be made; undefined after one that could. */
  #trouble: string | undefined

  constructor(create: CreateReview, log: Logger, metrics: ReviewMetrics, of = '') {
    this.#create = create
    this.#log = log
    this.#metrics = metrics
    this.#of = of
  }

  #review(question: TokenReviewQuestion, signal: AbortSignal): Promise<TokenVerdict> {
    const digest = createHash('sha256')
      .update(JSON.stringify([question.audiences, question.token]))
      .digest('base64')
    const kept = this.#keptVerdict(digest)
    if (kept) {
      this.#metrics.kept.inc()
      return Promise.resolve(kept)
    }
    const pending = this.#pending.get(digest)
    if (pending && !pending.signals.every(({ aborted }) => aborted)) {
      pending.signals.push(signal)
      return pending.verdict
    }
    const signals = [signal]
    const made = {
      signals,
      verdict: this.#begin(question, digest, signals).finally(() => this.#pending.get(digest) === made && this.#pending.delete(digest)),
    }
    this.#pending.set(digest, made)
    return made.verdict
  }

  async #begin(question: TokenReviewQuestion, digest: string, signals: readonly AbortSignal[]): Promise<TokenVerdict> {
    const verdict = await this.#work.run({
      client: question.client,
      bytes: question.token.length,
      run: () => this.#ask(question),
      isGone: () => signals.every(({ aborted }) => aborted),
    })
    if (verdict === refusedJob) return { refused: `more than ${bounds.waiting} tokens wait for a review`, unavailable: true }
    this.#keep(digest, verdict)
    return verdict
  }

  async #ask(question: TokenReviewQuestion): Promise<TokenVerdict> {
    const at = monotonicMs()
    const late: TokenVerdict = { refused: `the API server has not reviewed it within ${reviewMs / 1000} s`, unavailable: true }
    let verdict: TokenVerdict = late
    const review = this.#create(question.token, question.audiences).then(
      (status) => (verdict = reviewVerdict(status, question, wallClockMs())),
      (failure: ApiFailure) => (verdict = { refused: failure.message, unavailable: !faultsOfTheToken.includes(failure.code) }),
    )
    await within(reviewMs, review)
    const outcome = 'account' in verdict ? 'accepted' : verdict.unavailable ? 'unavailable' : 'refused'
    this.#metrics.seconds.observe({ outcome }, (monotonicMs() - at) / 1000)
    this.#tell('refused' in verdict && verdict.unavailable ? verdict.refused : undefined)
    return verdict
  }

  /** Tells of a reason once, and when reviews can be made again. */
  #tell(trouble: string | undefined): void {
    const log = this.#log('authn')
    if (trouble === this.#trouble) return
    if (trouble !== undefined) log.error(`tokens of service accounts${this.#of} cannot be reviewed, their callers are told to try again: ${trouble}`)
    else log.info(`tokens of service accounts${this.#of} are reviewed again`)
    this.#trouble = trouble
  }

  #keptVerdict(digest: string): TokenVerdict | undefined {
    const kept = this.#kept.get(digest)
    if (!kept) return undefined
    if (monotonicMs() < kept.until && !('account' in kept.verdict && kept.verdict.expiresAt <= wallClockMs())) return kept.verdict
    this.#kept.delete(digest)
    return undefined
  }

  #keep(digest: string, verdict: TokenVerdict): void {
    if ('refused' in verdict && verdict.unavailable) return
    this.#kept.delete(digest)
    this.#kept.set(digest, { verdict, until: monotonicMs() + ('account' in verdict ? keptMs.accepted : keptMs.refused) })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest)
  }
}
