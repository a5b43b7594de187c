/** Finds the external authorizers that policies name in the mesh configuration (docs/resources.md, A9). */
import { configKey } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { isStandIn } from '../config/stand-in.ts'
import type { ResourceFault } from '../model/faults.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { type AuthorizationPolicy, actionOf, isDryRun } from './policies.ts'

type Provider = NonNullable<MeshConfig['extensionProviders']>[number]
type Given = NonNullable<Provider['envoyExtAuthzHttp'] | Provider['envoyExtAuthzGrpc']>

/** Returns the mesh configuration's settings of an external authorizer over HTTP or gRPC, or the reason why there is none of that name. */
export function providerNamed(
  { extensionProviders }: Pick<MeshConfig, 'extensionProviders'>,
  name: string,
): { readonly http: Provider['envoyExtAuthzHttp']; readonly given: Given } | { readonly reason: string } {
  const provider = extensionProviders?.find((known) => known.name === name)
  if (!provider) return { reason: `the mesh configuration has no extension provider ${JSON.stringify(name)}` }
  const { envoyExtAuthzHttp: http, envoyExtAuthzGrpc: grpc } = provider
  const given = http ?? grpc
  return given ? { http, given } : { reason: `extension provider ${JSON.stringify(name)} is not an external authorizer` }
}

/** Reports CUSTOM policies that name no external authorizer of the mesh configuration, whether or not they select a proxy. */
export function reportMissingProviders(
  policies: readonly AuthorizationPolicy[],
  context: {
    readonly mesh: Pick<MeshConfig, 'extensionProviders'>
    readonly settings: { readonly names: MeshNames }
    report(fault: ResourceFault): void
  },
): void {
  for (const policy of policies) {
    if (isStandIn(policy) || actionOf(policy) !== 'CUSTOM' || isDryRun(policy, context.settings.names.domain)) continue
    const found = providerNamed(context.mesh, policy.spec.provider?.name ?? '')
    if (!('reason' in found)) continue
    const resource = configKey(policy)
    const consequence = 'until there is one, the workloads that it selects let nothing through'
    context.report({ type: 'policy', resource, objects: [resource], reason: found.reason, consequence })
  }
}
