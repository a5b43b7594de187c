/** Who reviews tokens that an orchestrator has issued. Without an orchestrator there is no such reviewer. */
import type { ServiceAccount } from '../../../src/identity/spiffe-id.ts'

/** What a review comes to. `expiresAt` in Unix milliseconds; infinite for a token that does not expire. */
export type ReviewVerdict =
  | { readonly account: ServiceAccount; readonly expiresAt: number }
  /** `unavailable`: nobody could be asked. */
  | { readonly refused: string; readonly unavailable: boolean }

/** Reviews tokens (`authentication.k8s.io/v1` TokenReview). Never rejects. */
export interface TokenReviewer {
  /** Reviews a token at a cluster, the own one when that is undefined. With audiences the token must be for one of them. */
  review(token: string, audiences: readonly string[] | undefined, clusterId: string | undefined): Promise<ReviewVerdict>
}
