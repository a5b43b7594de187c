/** The audiences of a TokenReview request to an orchestrator (docs/identity.md, K7; `authentication.k8s.io/v1` TokenReview). */
import type { Features } from '../config/features.ts'
import type { ReadToken } from '../policy/signed-token.ts'
import { tokenAudiences } from './token-rules.ts'

/** The audience of the tokens that every workload has for the orchestrator's own API. */
const ownAudience = 'kubernetes.default.svc'

/**
 * The values of `JWT_POLICY`: `third-party-jwt` are tokens for a configured audience, `first-party-jwt` those that every workload has for
 * the orchestrator's API.
 */
const policies = ['third-party-jwt', 'first-party-jwt']

/** Validates `JWT_POLICY`. Throws an Error that names the valid values. */
export function checkJwtPolicy({ JWT_POLICY }: Pick<Features, 'JWT_POLICY'>): void {
  if (!policies.includes(JWT_POLICY))
    throw new Error(`environment variable JWT_POLICY: ${JSON.stringify(JWT_POLICY.slice(0, 100))} is none of ${policies.join(', ')}`)
}

/** Returns the audiences that a TokenReview must require. Undefined when it need not require any. */
export function reviewAudiences(
  { claims: { aud } }: ReadToken,
  { JWT_POLICY, REQUIRE_3P_TOKEN, TOKEN_AUDIENCES }: Pick<Features, 'JWT_POLICY' | 'REQUIRE_3P_TOKEN' | 'TOKEN_AUDIENCES'>,
): readonly string[] | undefined {
  const demanded = tokenAudiences(TOKEN_AUDIENCES)
  if (REQUIRE_3P_TOKEN) return demanded
  const audiences = aud === undefined ? [] : Array.isArray(aud) ? aud : [aud]
  if (audiences.length === 0) return undefined
  const isOwn = audiences.length === 1 && audiences[0] === ownAudience
  return isOwn && JWT_POLICY === 'first-party-jwt' ? undefined : demanded
}
