/** Names of the checks that make policies stricter (described in `policy-checks.ts`), and which of them are disabled. */

/** All names, sorted. */
export const policyCheckNames = [
  'claim-types',
  'endpoint-addresses',
  'file-readability',
  'forwarded-addresses',
  'header-underscores',
  'host-forms',
  'never-matching-hosts',
  'never-matching-paths',
  'own-namespace-instances',
  'path-forms',
  'policy-namespaces',
  'secret-accounts',
  'undeclared-ports',
] as const satisfies readonly string[]

/** The name of a check. */
export type PolicyCheckName = (typeof policyCheckNames)[number]
/** Disabled checks. */
export type OptOuts = ReadonlySet<PolicyCheckName>

/** Parses names of checks, separated by commas. Throws an Error that lists unknown names. */
export function readOptOuts(given: string): OptOuts {
  const named = given.split(',').flatMap((name) => name.trim() || [])
  const unknown = named.filter((name) => !policyCheckNames.some((known) => known === name))
  if (unknown.length === 0) return new Set(named as PolicyCheckName[])
  const quoted = JSON.stringify(unknown.join(', ').slice(0, 100))
  throw new Error(`environment variable MESH_POLICY_OPT_OUTS: ${quoted}: no such check; there are: ${policyCheckNames.join(', ') || 'none'}`)
}
