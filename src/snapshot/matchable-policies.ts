/**
 * Replaces AuthorizationPolicies with a rule that can never match under the mesh's path normalization by stand-ins that deny everything.
 */
import { configKey } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import type { OptOuts } from '../config/opt-outs.ts'
import { pathFault } from '../config/path-patterns.ts'
import { selectedLabels } from '../config/shapes/policies.ts'
import { isStandIn, type StandIn } from '../config/stand-in.ts'
import type { ResourceFault } from '../model/faults.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { type AuthorizationPolicy, byNamespace, isDryRun, type PolicyIndex } from './policies.ts'

/** The settings that decide, and the function that reports faults. */
interface Context {
  readonly mesh: Pick<MeshConfig, 'pathNormalization'>
  readonly settings: { readonly optOuts: OptOuts; readonly names: MeshNames }
  report(fault: ResourceFault): void
}

type Index = PolicyIndex['authorization']

/** Groups the policies by namespace, with stand-ins for those with such a rule. Returns the index of before if nothing in it changed. */
export function matchableByNamespace(policies: readonly AuthorizationPolicy[], context: Context, before: Index | undefined): Index {
  const index = byNamespace(matchable(policies, context, before))
  const isSame = (namespace: string, list: readonly AuthorizationPolicy[]) => {
    const known = before?.get(namespace)
    return known?.length === list.length && known.every((policy, at) => policy === list[at])
  }
  return before?.size === index.size && [...index].every((entry) => isSame(...entry)) ? before : index
}

function matchable(policies: readonly AuthorizationPolicy[], context: Context, before: Index | undefined): readonly AuthorizationPolicy[] {
  if (context.settings.optOuts.has('never-matching-paths')) return policies
  const { normalization } = context.mesh.pathNormalization
  return policies.map((policy) => {
    const reason = isStandIn(policy) || isDryRun(policy, context.settings.names.domain) ? undefined : unmatchable(policy, normalization)
    if (reason === undefined) return policy
    const resource = configKey(policy)
    const consequence = 'until it is mended, the workloads that it selects let nothing through'
    context.report({ type: 'policy', resource, objects: [resource], reason, consequence })
    const known = before?.get(policy.namespace)?.find(({ name, generation }) => name === policy.name && generation === policy.generation)
    return known && isStandIn(known) && known.spec.invalid === reason ? known : standIn(policy, reason)
  })
}

function standIn(policy: Exclude<AuthorizationPolicy, StandIn>, invalid: string): StandIn {
  return { ...policy, spec: { selector: { matchLabels: selectedLabels(policy.spec) }, invalid, given: policy.spec } }
}

/** Returns the field and value of the first path that can never match. */
function unmatchable(
  { spec }: Exclude<AuthorizationPolicy, StandIn>,
  normalization: MeshConfig['pathNormalization']['normalization'],
): string | undefined {
  for (const [index, rule] of (spec.rules ?? []).entries())
    for (const [entry, { operation }] of (rule.to ?? []).entries())
      for (const field of ['paths', 'notPaths'] as const)
        for (const [at, value] of (operation[field] ?? []).entries()) {
          const fault = pathFault(value, normalization)
          if (fault !== undefined)
            return `spec.rules[${index}].to[${entry}].operation.${field}[${at}]: ${JSON.stringify(value.slice(0, 200))} ${fault}`
        }
  return undefined
}
