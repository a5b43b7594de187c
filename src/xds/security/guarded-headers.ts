/**
 * Request headers that clients may not set because policies set them, and alternative spellings of headers that policies set or check:
 * applications that receive headers as variables cannot distinguish `x_user` from `x-user` (RFC 3875, section 4.1.18).
 */
import { headerOutputs } from '../../config/header-outputs.ts'
import { resolveRule } from '../../config/policy-attributes.ts'
import { isStandIn } from '../../config/stand-in.ts'
import type { RequestAuthentication, WorkloadPolicies } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'

/** What is removed from the headers of requests before any other processing (docs/resources.md, A13). */
export interface GuardedHeaders {
  /** Names of removed headers, in lower case, sorted. */
  readonly removed: readonly string[]
  /** Whether all headers with an underscore in their name are removed. */
  readonly dropsUnderscores: boolean
}

/** No header is removed. */
export const noGuardedHeaders: GuardedHeaders = { removed: [], dropsUnderscores: false }

/** The maximum number of hyphens and underscores in a name whose spellings are removed one by one, and the maximum number of spellings. */
const maxMarks = 6
const maxSpellings = 256

/** Headers that proxies need; never removed. */
const needed: ReadonlySet<string> = new Set(['host', 'authorization', 'cookie', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'te'])

/** Returns the headers that the policies of a workload guard. */
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
    if (others.length > maxSpellings - removed.size) dropsUnderscores = true
    else for (const other of others) if (!named.has(other) && !sources.has(other)) removed.add(other)
  }
  // Underscores cannot be dropped if a policy reads a header with an underscore in its name.
  const isNeeded = [...judged, ...sources].some((name) => name.includes('_'))
  return { removed: [...removed].sort(), dropsUnderscores: dropsUnderscores && !isNeeded }
}

const outputsOf = (policy: RequestAuthentication): readonly string[] =>
  isStandIn(policy) ? (policy.spec.headers ?? []) : (policy.spec.jwtRules ?? []).flatMap(headerOutputs)

/** Returns the headers from which a policy takes tokens. */
const sourcesOf = (policy: RequestAuthentication): readonly string[] =>
  isStandIn(policy) ? [] : (policy.spec.jwtRules ?? []).flatMap(({ fromHeaders }) => (fromHeaders ?? []).map(({ name }) => name.toLowerCase()))

/**
 * Returns the other spellings of a name, with a hyphen or an underscore in each place. For a name with too many of them, returns a list
 * that exceeds {@link maxSpellings}.
 */
function spellings(name: string): string[] {
  const parts = name.split(/[-_]/)
  if (parts.length - 1 > maxMarks) return new Array(maxSpellings + 1).fill(name)
  const all = parts.slice(1).reduce((starts, part) => starts.flatMap((start) => [`${start}-${part}`, `${start}_${part}`]), [parts[0] as string])
  return all.filter((spelling) => spelling !== name)
}
