/** How a token that no rule accepts is reviewed (docs/identity.md, K7): it is read here, on the thread that was presented it, and the main thread is asked. */
import { type ReviewFeatures, reviewAudiences, reviewFault } from '../../../src/identity/token-review.ts'
import type { AskFor } from '../../runtime/actor.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { TokenReview } from './token-checks.ts'

/** Returns the review of tokens by the API server of the cluster that the call names. What can be refused without it does not reach the main thread. */
export function reviewedByCluster(features: ReviewFeatures, askFor: AskFor): TokenReview {
  return async (token, clusterId, { client, signal }) => {
    const fault = reviewFault(token, wallClockMs())
    if (fault !== undefined) return { refused: fault, unavailable: false }
    const { exp } = token.claims
    const expiresAt = typeof exp === 'number' ? exp * 1000 : undefined
    const asking = { signal, restMs: () => Number.POSITIVE_INFINITY }
    return askFor(asking, 'reviewToken', {
      token: token.text,
      cluster: clusterId || undefined,
      audiences: reviewAudiences(token, features),
      expiresAt,
      client,
    }).catch((error: Error) => ({ refused: error.message, unavailable: true }))
  }
}
