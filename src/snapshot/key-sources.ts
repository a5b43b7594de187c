/** Determines where the keys that RequestAuthentications name come from (docs/resources.md, A4). */
import type { JwtRule } from '../config/kinds/request-authentication.ts'
import { isStandIn } from '../config/stand-in.ts'
import { compare } from '../model/order.ts'
import type { RequestAuthentication } from './policies.ts'

/** The prefix of a key source that is an issuer whose OpenID configuration is fetched first. */
export const openIdPrefix = 'openid:'

/** Fetched key sets by {@link keySource}. */
export type KeySets = ReadonlyMap<string, string>

/** Returns the source of a rule's keys: a URL, or {@link openIdPrefix} and the issuer. Undefined when the rule contains the keys. */
export function keySource(rule: JwtRule): string | undefined {
  if (rule.jwks !== undefined) return undefined
  return rule.jwksUri || `${openIdPrefix}${rule.issuer}`
}

/** The timeout for fetching keys in milliseconds: the default where no rule sets one, and the maximum. */
export const keyFetchMs = { usual: 5000, longest: 60_000 }

/** Returns the key source of each rule that has one, with its timeout in milliseconds. */
export function neededKeys(rules: readonly JwtRule[]): (readonly [source: string, ms: number])[] {
  return rules.flatMap((rule) => {
    const source = keySource(rule)
    return source === undefined ? [] : [[source, Math.min(rule.timeout ?? keyFetchMs.usual, keyFetchMs.longest)] as const]
  })
}

/**
 * Returns the rules of all policies that select a workload, sorted by issuer. A stand-in for an invalid policy has none, so it accepts no
 * token.
 */
export function jwtRules(policies: readonly RequestAuthentication[]): JwtRule[] {
  return policies.flatMap((policy) => (isStandIn(policy) ? [] : (policy.spec.jwtRules ?? []))).sort((one, other) => compare(one.issuer, other.issuer))
}
