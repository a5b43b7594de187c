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
import { hostSuggestion } from './near-hosts.ts'
import { checkPeerPorts, checkRulePorts } from './policy-ports.ts'
import { checkRules } from './policy-rules.ts'
import { isAbsent, listed } from './references.ts'
import { selectorPath } from './selectors.ts'
import { checkKeys } from './token-keys.ts'
import { servicesFor, sidecarWorkloads } from './workload-ports.ts'
import type { ProviderView, World } from './world.ts'

/** Tells the provider, the ports and the values of rules that a policy names and that do not exist. */
export function analyzeAuthorizationPolicy(object: ConfigObject<AuthorizationPolicySpec>, world: World, tell: Tell): void {
  checkRulePorts(object, world, tell)
  checkRules(object, world, tell)
  const { provider } = object.spec
  const { providers } = world.mesh
  if (!provider?.name || !providers) return
  const reason = providerFault(provider.name, providers, world)
  if (reason !== undefined) tell('IST0101', 'spec.provider.name', reason)
}

/** Returns why no request that the rules of a policy match is admitted: its provider is not there, or the service that this one asks. */
function providerFault(name: string, providers: readonly ProviderView[], world: World): string | undefined {
  const found = providers.find((provider) => provider.name === name)
  const consequence = 'so all requests that the rules match are denied'
  if (!found) {
    const names = providers.map((provider) => provider.name)
    return `extensionProviders of the mesh configuration have no ${name}, ${consequence}${suggestion(name, names)}`
  }
  const { service, port = 0 } = found
  if (service === undefined) return undefined
  const slash = service.indexOf('/')
  const [namespace, host] = [service.slice(0, Math.max(slash, 0)), service.slice(slash + 1)]
  const services = world.services(host).filter((each) => namespace === '' || each.namespace === namespace)
  const asked = `the provider ${name} of the mesh configuration asks ${service}`
  if (services.length === 0)
    return isAbsent(host, world)
      ? `${asked}, and there is no such service, ${consequence}${hostSuggestion(host, namespace || world.mesh.rootNamespace, world)}`
      : undefined
  const numbers = services.flatMap(({ ports }) => ports.map(({ number }) => number))
  return numbers.includes(port) ? undefined : `${asked}:${port}, and the service has only the ports ${listed(numbers.map(String))}, ${consequence}`
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
