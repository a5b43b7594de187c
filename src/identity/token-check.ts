/** Validates the claims of a token, but not its signature, and returns its identity (docs/identity.md, K1 to K6; RFC 7519, section 4.1). */
import type { TokenQuestion } from '../../protocols/messages/identity.ts'
import { described, type ReadToken } from '../policy/signed-token.ts'
import { type ServiceAccount, serviceAccountOf } from './spiffe-id.ts'
import type { TokenRule } from './token-rules.ts'

/** The maximum length of a token, in characters. */
export const longestToken = 16_384
/** How far the issuer's clock may be ahead for `nbf` and `iat`, in seconds. `exp` has no leeway. */
const skew = 60
/** Unix seconds of the year 10000. Later times are not accepted as dates. */
const latest = 253_402_300_800

/** The service account in a token's claims and the token's expiry (Unix milliseconds), or the reason why a rule rejects the claims. */
export type ClaimsVerdict = { readonly account: ServiceAccount; readonly expiresAt: number } | { readonly refused: string }

/** Returns the rules for a token's issuer that apply to the called service. */
export function rulesFor(rules: readonly TokenRule[], { claims }: ReadToken, service: TokenQuestion['service']): TokenRule[] {
  return rules.filter(({ issuer, onlyForCa }) => issuer === claims.iss && (!onlyForCa || service === 'ca'))
}

/** Validates the claims of a token against a rule at the Unix time `now` in seconds. */
export function checkClaims({ claims }: ReadToken, { issuer, audiences }: TokenRule, now: number): ClaimsVerdict {
  const refuse = (refused: string) => ({ refused })
  if (claims.iss !== issuer) return refuse(`the token is of issuer ${described(claims.iss)}`)
  const { exp, nbf, iat } = claims
  if (!isDate(exp)) return refuse(`exp is ${described(exp)}, a date is needed`)
  for (const [name, date] of Object.entries({ nbf, iat })) {
    if (date === undefined) continue
    if (!isDate(date)) return refuse(`${name} is ${described(date)}, which is no date`)
    if (date > now + skew) return refuse(`${name} is ${Math.ceil(date - now)} s from now`)
  }
  if (exp <= now) return refuse(`it expired ${Math.floor(now - exp)} s ago`)
  const given = audiencesOf(claims.aud)
  if (!given.some((audience) => audiences.includes(audience)))
    return refuse(`it is for audience ${described(claims.aud)}, none of which is one of ${described(audiences)}`)
  const account = serviceAccountOf(claims.sub)
  return account ? { account, expiresAt: exp * 1000 } : refuse(`sub is ${described(claims.sub)}, not system:serviceaccount:<namespace>:<account>`)
}

/** Returns the audiences of a token (`aud`: a text or a list). */
function audiencesOf(aud: unknown): string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter((audience) => typeof audience === 'string')
}

const isDate = (value: unknown): value is number => typeof value === 'number' && value > 0 && value < latest
