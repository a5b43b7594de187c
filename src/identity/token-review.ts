/** What an orchestrator is asked about a token (docs/identity.md, K7; `authentication.k8s.io/v1` TokenReview). */
import type { Features } from '../config/features.ts'
import type { ReadToken } from '../policy/signed-token.ts'
import { tokenAudiences } from './token-rules.ts'

/** The audience of tokens that the orchestrator gives to every workload for itself. */
const ownAudience = 'kubernetes.default.svc'

/** Where tokens come from: `third-party-jwt` are made for an audience, `first-party-jwt` are those that every workload has. */
const policies = ['third-party-jwt', 'first-party-jwt']

/** Checks `JWT_POLICY`. Throws an Error that names the values it may have. */
export function checkJwtPolicy({ JWT_POLICY }: Pick<Features, 'JWT_POLICY'>): void {
  if (!policies.includes(JWT_POLICY))
    throw new Error(`environment variable JWT_POLICY: ${JSON.stringify(JWT_POLICY.slice(0, 100))} is none of ${policies.join(', ')}`)
}

/** The audiences that a review of a token demands; undefined when it demands none. */
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
