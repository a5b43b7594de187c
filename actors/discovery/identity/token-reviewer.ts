/** The interface for reviewing tokens that an orchestrator issued. Without an orchestrator there is no reviewer. */
import type { ServiceAccount } from '../../../src/identity/spiffe-id.ts'

/** The result of a review. `expiresAt` is in Unix milliseconds; infinite for a token that does not expire. */
export type ReviewVerdict =
  | { readonly account: ServiceAccount; readonly expiresAt: number }
  /** `unavailable`: the review could not be made. */
  | { readonly refused: string; readonly unavailable: boolean }

/** Reviews tokens (`authentication.k8s.io/v1` TokenReview). Never rejects. */
export interface TokenReviewer {
  /** Reviews a token at a cluster; undefined stands for the own cluster. If audiences are given, the token must be for one of them. */
  review(token: string, audiences: readonly string[] | undefined, clusterId: string | undefined): Promise<ReviewVerdict>
}
