/** Determines where the keys that RequestAuthentications name come from (docs/resources.md, A4). */
import type { JwtRule } from '../config/kinds/request-authentication.ts'
import { isStandIn } from '../config/stand-in.ts'
import { contain } from '../model/faults.ts'
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

/** What is needed of a key source: the timeout of a fetch in milliseconds, and the namespaces whose policies name the source, sorted. */
export interface NeededKeys {
  readonly timeoutMs: number
  readonly namespaces: readonly string[]
}

/** Returns the key sources that policies name: of several timeouts for a source the longest counts. */
export function neededKeys(policies: readonly RequestAuthentication[]): ReadonlyMap<string, NeededKeys> {
  const needed = new Map<string, { timeoutMs: number; namespaces: Set<string> }>()
  for (const policy of policies) {
    // An object that cannot be read is reported where its listeners are made.
    const sources = contain(
      () => jwtRules([policy]).map((rule) => [keySource(rule), rule.timeout ?? keyFetchMs.usual] as const),
      () => [],
    )
    for (const [source, timeoutMs] of sources) {
      if (source === undefined) continue
      const known = needed.get(source) ?? { timeoutMs: 0, namespaces: new Set<string>() }
      needed.set(source, known)
      known.timeoutMs = Math.max(known.timeoutMs, Math.min(timeoutMs, keyFetchMs.longest))
      known.namespaces.add(policy.namespace)
    }
  }
  return new Map([...needed].map(([source, { timeoutMs, namespaces }]) => [source, { timeoutMs, namespaces: [...namespaces].sort(compare) }]))
}

/**
 * Returns the rules of all policies that select a workload, sorted by issuer. A stand-in for an invalid policy has none, so it accepts no
 * token.
 */
export function jwtRules(policies: readonly RequestAuthentication[]): JwtRule[] {
  return policies.flatMap((policy) => (isStandIn(policy) ? [] : (policy.spec.jwtRules ?? []))).sort((one, other) => compare(one.issuer, other.issuer))
}
