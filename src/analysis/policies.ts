/** Finds policies that name namespaces or providers that do not exist, or ask for what their workloads do not take. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { AuthorizationPolicySpec } from '../config/kinds/authorization-policy.ts'
import type { PeerAuthenticationSpec } from '../config/kinds/peer-authentication.ts'
import type { RequestAuthenticationSpec } from '../config/kinds/request-authentication.ts'
import { selectedLabels } from '../config/shapes/policies.ts'
import { suggestion } from '../model/edit-distance.ts'
import { isHttp } from '../model/protocol.ts'
import { peersOf } from './claims.ts'
import type { Tell } from './finding.ts'
import { checkPeerPorts, checkRulePorts } from './policy-ports.ts'
import { checkRules } from './policy-rules.ts'
import { listed } from './references.ts'
import { selectorPath } from './selectors.ts'
import { checkKeys } from './token-keys.ts'
import { servicesFor, sidecarWorkloads } from './workload-ports.ts'
import type { World } from './world.ts'

/** Tells the provider, the ports and the values of rules that a policy names and that do not exist. */
export function analyzeAuthorizationPolicy(object: ConfigObject<AuthorizationPolicySpec>, world: World, tell: Tell): void {
  checkRulePorts(object, world, tell)
  checkRules(object, world, tell)
  const { provider } = object.spec
  const { providers } = world.mesh
  if (provider?.name && providers && !providers.includes(provider.name))
    tell(
      'IST0101',
      'spec.provider.name',
      `extensionProviders of the mesh configuration have no ${provider.name}, so all requests that the rules match are denied${suggestion(provider.name, providers)}`,
    )
}

/** Tells keys that are not fetched, and tokens that are required where no port is HTTP. */
export function analyzeRequestAuthentication({ namespace, spec }: ConfigObject<RequestAuthenticationSpec>, world: World, tell: Tell): void {
  checkKeys(spec, world, tell)
  const labels = selectedLabels(spec)
  if (!spec.jwtRules?.length || Object.keys(labels).length === 0) return
  const services = servicesFor(sidecarWorkloads(world.workloads(labels, namespace) ?? []) ?? [], world)
  const ports = services.flatMap((service) => service.ports)
  if (ports.length === 0 || ports.some(({ protocol }) => isHttp(protocol) || protocol === 'unknown')) return
  const named = listed(services.map(({ name }) => name))
  tell(
    'IST0119',
    selectorPath(spec),
    `no port of the Service ${named} is HTTP, so tokens are not looked at: declare the protocol HTTP, or remove the policy`,
  )
}

/** Tells ports that are not there, and a policy that another one for the same workloads makes void: of several the oldest counts (docs/resources.md, A2). */
export function analyzePeerAuthentication(object: ConfigObject<PeerAuthenticationSpec>, world: World, tell: Tell): void {
  checkPeerPorts(object, world, tell)
  const policies = world.claimants(peersOf(object.namespace)) as readonly ConfigObject<PeerAuthenticationSpec>[]
  const selected = (spec: PeerAuthenticationSpec) => JSON.stringify(Object.entries(selectedLabels(spec)).sort())
  const first = policies.slice(0, Math.max(policies.indexOf(object), 0)).find(({ spec }) => selected(spec) === selected(object.spec))
  if (first)
    tell(
      'MESH0007',
      selectorPath(object.spec),
      `the PeerAuthentication ${first.namespace}/${first.name} is for the same workloads, and counts: keep one of them`,
    )
}
