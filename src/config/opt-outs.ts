/** Names of the checks that make policies stricter (`policy-checks.ts` says what each is), and which of them are left out. */

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
  'undeclared-ports',
] as const satisfies readonly string[]

/** Name of a check. */
export type PolicyCheckName = (typeof policyCheckNames)[number]
/** Checks that are left out. */
export type OptOuts = ReadonlySet<PolicyCheckName>

/** Reads names of checks, separated by commas. Throws an Error that names those that are none. */
export function readOptOuts(given: string): OptOuts {
  const named = given.split(',').flatMap((name) => name.trim() || [])
  const unknown = named.filter((name) => !policyCheckNames.some((known) => known === name))
  if (unknown.length === 0) return new Set(named as PolicyCheckName[])
  const quoted = JSON.stringify(unknown.join(', ').slice(0, 100))
  throw new Error(`environment variable MESH_POLICY_OPT_OUTS: ${quoted}: no such check; there are: ${policyCheckNames.join(', ') || 'none'}`)
}
