/**
 * Headers of requests that clients may not set, because policies set them, and spellings beside those that policies set or judge: `x_user` is
 * `x-user` to applications that get headers as variables (RFC 3875, section 4.1.18).
 */
import { headerOutputs } from '../../config/header-outputs.ts'
import { resolveRule } from '../../config/policy-attributes.ts'
import { isStandIn } from '../../config/stand-in.ts'
import type { RequestAuthentication, WorkloadPolicies } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'

/** What happens to headers of requests before anything else looks at them (docs/resources.md, A13). */
export interface GuardedHeaders {
  /** Names of those that are removed, in small letters, sorted. */
  readonly removed: readonly string[]
  /** Whether all headers with an underscore in their name are removed. */
  readonly dropsUnderscores: boolean
}

/** Nothing is removed. */
export const noGuardedHeaders: GuardedHeaders = { removed: [], dropsUnderscores: false }

/** Hyphens and underscores in a name for which each spelling is removed by itself, and how many spellings at most. */
const mostMarks = 6
const mostSpellings = 256

/** Names that hold what proxies need of a request. */
const needed: ReadonlySet<string> = new Set(['host', 'authorization', 'cookie', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'te'])

/** Finds the headers that the policies of a workload guard. */
export function guardedHeaders({ requests, authorization }: WorkloadPolicies, { settings }: MeshSnapshot): GuardedHeaders {
  const { plugins, optOuts } = settings
  const tokens = plugins.includes('authn') ? requests : []
  const set = new Set(tokens.flatMap(outputsOf).map((name) => name.toLowerCase()))
  const judged = authorization.flatMap((policy) =>
    isStandIn(policy)
      ? []
      : (policy.spec.rules ?? []).flatMap((rule) =>
          resolveRule(rule, policy.namespace).when.flatMap(({ attribute }) => (attribute.type === 'header' ? [attribute.name] : [])),
        ),
  )
  const sources = new Set([...needed, ...tokens.flatMap(sourcesOf)])
  const named = new Set([...set, ...judged])
  const removed = new Set([...set].filter((name) => !sources.has(name)))
  if (optOuts.has('header-underscores')) return { removed: [...removed].sort(), dropsUnderscores: false }
  let dropsUnderscores = false
  for (const name of named) {
    const others = spellings(name)
    if (others.length > mostSpellings - removed.size) dropsUnderscores = true
    else for (const other of others) if (!named.has(other) && !sources.has(other)) removed.add(other)
  }
  // Those of which a policy speaks by such a name stay.
  const isNeeded = [...judged, ...sources].some((name) => name.includes('_'))
  return { removed: [...removed].sort(), dropsUnderscores: dropsUnderscores && !isNeeded }
}

const outputsOf = (policy: RequestAuthentication): readonly string[] =>
  isStandIn(policy) ? (policy.spec.headers ?? []) : (policy.spec.jwtRules ?? []).flatMap(headerOutputs)

/** Headers that a policy takes tokens from. */
const sourcesOf = (policy: RequestAuthentication): readonly string[] =>
  isStandIn(policy) ? [] : (policy.spec.jwtRules ?? []).flatMap(({ fromHeaders }) => (fromHeaders ?? []).map(({ name }) => name.toLowerCase()))

/** The other names with a hyphen or an underscore where a name has either; too many to be used where it has more than a few. */
function spellings(name: string): string[] {
  const parts = name.split(/[-_]/)
  if (parts.length - 1 > mostMarks) return new Array(mostSpellings + 1).fill(name)
  const all = parts.slice(1).reduce((starts, part) => starts.flatMap((start) => [`${start}-${part}`, `${start}_${part}`]), [parts[0] as string])
  return all.filter((spelling) => spelling !== name)
}
