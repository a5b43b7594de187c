/** Where the keys come from that RequestAuthentications name (docs/resources.md, A4). */
import type { JwtRule } from '../config/kinds/request-authentication.ts'
import { isStandIn } from '../config/stand-in.ts'
import { compare } from '../model/order.ts'
import type { RequestAuthentication } from './policies.ts'

/** Marks a key source that is an issuer to be asked for its OpenID configuration. */
export const openIdPrefix = 'openid:'

/** Key sets that were fetched, by {@link keySource}. */
export type KeySets = ReadonlyMap<string, string>

/** Where the keys of a rule come from: a URL, or the issuer's OpenID configuration; undefined when they stand in the rule. */
export function keySource(rule: JwtRule): string | undefined {
  if (rule.jwks !== undefined) return undefined
  return rule.jwksUri || `${openIdPrefix}${rule.issuer}`
}

/** How long the keys of a source may take to come, in milliseconds, where no rule says it, and at most. */
export const keyFetchMs = { usual: 5000, longest: 60_000 }

/** The source that each rule needs, if it needs one, and how long its keys may take to come, in milliseconds. */
export function neededKeys(rules: readonly JwtRule[]): (readonly [source: string, ms: number])[] {
  return rules.flatMap((rule) => {
    const source = keySource(rule)
    return source === undefined ? [] : [[source, Math.min(rule.timeout ?? keyFetchMs.usual, keyFetchMs.longest)] as const]
  })
}

/** The rules of all policies that select a workload, sorted by issuer. An invalid policy accepts no token at all. */
export function jwtRules(policies: readonly RequestAuthentication[]): JwtRule[] {
  return policies.flatMap((policy) => (isStandIn(policy) ? [] : (policy.spec.jwtRules ?? []))).sort((one, other) => compare(one.issuer, other.issuer))
}
