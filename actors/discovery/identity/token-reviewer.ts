/** The interface for reviewing tokens that an orchestrator issued. Without an orchestrator there is no reviewer. */
import type { TokenVerdict } from '../token-checks.ts'

/** Reviews tokens (`authentication.k8s.io/v1` TokenReview). Never rejects. */
export interface TokenReviewer {
  /** Reviews a token at a cluster; undefined stands for the own cluster. If audiences are given, the token must be for one of them. */
  review(token: string, audiences: readonly string[] | undefined, clusterId: string | undefined): Promise<TokenVerdict>
}
