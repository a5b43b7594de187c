/** Reviews of tokens by an orchestrator (docs/identity.md, K7; `authentication.k8s.io/v1` TokenReview): what is asked, and what the answer means. */
import type { TokenVerdict } from '../../protocols/messages/identity.ts'
import type { Features } from '../config/features.ts'
import { described, type ReadToken } from '../policy/signed-token.ts'
import { serviceAccountOf } from './spiffe-id.ts'
import { tokenAudiences } from './token-rules.ts'

/** The group of all service accounts. */
const accountsGroup = 'system:serviceaccounts'
/** How long a token without an expiry counts after its review, in milliseconds. Then the caller authenticates again. */
const endlessMs = 3_600_000

/**
 * The values of `JWT_POLICY`: `third-party-jwt` are tokens for a configured audience, `first-party-jwt` those that every workload has for
 * the orchestrator's API.
 */
const policies = ['third-party-jwt', 'first-party-jwt']

/** The variables that decide how tokens are reviewed. */
export type ReviewFeatures = Pick<Features, 'JWT_POLICY' | 'REQUIRE_3P_TOKEN' | 'TOKEN_AUDIENCES'>

/** Validates `JWT_POLICY`. Throws an Error that names the valid values. */
export function checkJwtPolicy({ JWT_POLICY }: Pick<Features, 'JWT_POLICY'>): void {
  if (!policies.includes(JWT_POLICY))
    throw new Error(`environment variable JWT_POLICY: ${JSON.stringify(JWT_POLICY.slice(0, 100))} is none of ${policies.join(', ')}`)
}

/**
 * Returns why a token is refused without a review; undefined when the orchestrator has to decide. `now`: Unix
 * milliseconds.
 */
export function reviewFault({ claims: { exp, sub } }: ReadToken, now: number): string | undefined {
  if (!serviceAccountOf(sub)) return `sub is ${described(sub)}, not system:serviceaccount:<namespace>:<account>`
  if (exp !== undefined && typeof exp !== 'number') return `exp is ${described(exp)}, a date is needed`
  return exp !== undefined && exp * 1000 <= now ? `it expired ${Math.floor(now / 1000 - exp)} s ago` : undefined
}

/**
 * Returns the audiences that a TokenReview must require. Undefined when it need not require any: then the API server accepts tokens for itself
 * only, under whatever name its tokens have for it.
 */
export function reviewAudiences({ claims: { aud } }: ReadToken, features: ReviewFeatures): readonly string[] | undefined {
  const demanded = tokenAudiences(features.TOKEN_AUDIENCES)
  if (features.REQUIRE_3P_TOKEN) return demanded
  const audiences = aud === undefined ? [] : Array.isArray(aud) ? aud : [aud]
  if (audiences.length === 0) return undefined
  const isForOther = audiences.length === 1 && !demanded.includes(audiences[0])
  return isForOther && features.JWT_POLICY === 'first-party-jwt' ? undefined : demanded
}

/** The status of a TokenReview, as far as it is used. */
export interface ReviewStatus {
  readonly authenticated?: boolean
  readonly error?: string
  readonly audiences?: readonly string[]
  readonly user?: { readonly username?: string; readonly groups?: readonly string[] }
}

/**
 * Returns what the status of a review means: only a service account is accepted, and where audiences were asked for, only with one of them.
 * `expiresAt`: the expiry of the token, undefined if it has none. `now`: Unix milliseconds.
 */
export function reviewVerdict(
  status: ReviewStatus | undefined,
  { audiences, expiresAt }: { readonly audiences: readonly string[] | undefined; readonly expiresAt?: number | undefined },
  now: number,
): TokenVerdict {
  const refuse = (refused: string) => ({ refused, unavailable: false })
  if (!status) return { refused: 'the API server gave no verdict', unavailable: true }
  if (status.authenticated !== true) return refuse(`the API server refuses it: ${described(status.error ?? 'no reason is given')}`)
  if (audiences && !audiences.some((audience) => status.audiences?.includes(audience)))
    return refuse(`the API server says that it is for audience ${described(status.audiences)}, none of which is one of ${described(audiences)}`)
  const account = serviceAccountOf(status.user?.username)
  if (!account || !status.user?.groups?.includes(accountsGroup))
    return refuse(`it is the token of the user ${described(status.user?.username)}, who is no service account`)
  return { account, expiresAt: expiresAt ?? now + endlessMs }
}
