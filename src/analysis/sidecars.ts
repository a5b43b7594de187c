/** Finds Sidecars of which only one can count, and hosts that they import and that are not there. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import { completeHost, hostsOverlap } from '../model/match.ts'
import { routesOf, sidecarsOf } from './claims.ts'
import { checkDestination } from './destinations.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion } from './near-hosts.ts'
import { isAbsent, listed, tellNoNamespace } from './references.ts'
import { selectorPath } from './selectors.ts'
import type { World } from './world.ts'

/** Tells the hosts that a Sidecar imports and that no service has, and other Sidecars for the same workloads. */
export function analyzeSidecar(sidecar: ConfigObject<SidecarSpec>, world: World, tell: Tell): void {
  const { namespace, spec } = sidecar
  checkOthers(sidecar, world, tell)
  const { egressProxy } = spec.outboundTrafficPolicy ?? {}
  if (egressProxy)
    checkDestination(egressProxy, 'spec.outboundTrafficPolicy.egressProxy', sidecar, world, tell, 'connections to unknown hosts are closed')
  for (const [index, { hosts }] of (spec.egress ?? []).entries())
    for (const [number, written] of hosts.entries()) {
      const slash = written.indexOf('/')
      const [scope, host] = [written.slice(0, slash), written.slice(slash + 1)]
      const at = `spec.egress[${index}].hosts[${number}]`
      if (scope.startsWith('~')) continue
      const owner = scope === '.' ? namespace : scope
      if (owner !== '*' && tellNoNamespace(owner, ', so nothing is imported', { at, world, tell })) continue
      if (host !== '*') checkImport({ host, owner, at }, sidecar, world, tell)
    }
}

/** Tells a host that is imported and that no service has, or none in the namespace from which it is imported. */
function checkImport(
  { host, owner, at }: { readonly host: string; readonly owner: string; readonly at: string },
  { namespace }: ConfigObject<SidecarSpec>,
  world: World,
  tell: Tell,
): void {
  const full = completeHost(host, namespace, world.domain).toLowerCase()
  if (!isThere(full, world)) {
    if (isAbsent(full, world))
      tell('IST0101', at, `there is no service ${full}, so nothing is imported`, () => hostSuggestion(host, namespace, world))
    return
  }
  const owners = new Set(world.services(full).map((service) => service.namespace))
  if (owner === '*' || owners.size === 0 || owners.has(owner)) return
  // Routes of the namespace for the host import it too.
  if (world.claimants(routesOf(full)).some((routes) => routes.namespace === owner)) return
  const places = [...owners].sort()
  tell(
    'IST0101',
    at,
    `the service ${full} is in the namespace ${listed(places)}, not in ${owner}, so nothing is imported: write ${places[0]}/${host}`,
  )
}

/** Tells the other Sidecars of a namespace that select the same workloads, or all of them. */
function checkOthers(sidecar: ConfigObject<SidecarSpec>, world: World, tell: Tell): void {
  const { workloadSelector } = sidecar.spec
  const isDefault = Object.keys(workloadSelector?.labels ?? workloadSelector?.matchLabels ?? {}).length === 0
  const others = world
    .claimants(sidecarsOf(sidecar))
    .filter((other) => other !== sidecar)
    .map(({ name }) => name)
  if (others.length === 0) return
  const message = isDefault
    ? `the Sidecar ${listed(others)} of this namespace has no workloadSelector either: only the oldest counts`
    : `the Sidecar ${listed(others)} of this namespace selects the same workloads: only the oldest counts`
  tell(isDefault ? 'IST0111' : 'IST0110', selectorPath(sidecar.spec), message)
}

/** Whether a service has a host, or one that overlaps with a wildcard. */
const isThere = (host: string, world: World): boolean =>
  world.services(host).length > 0 || (host.startsWith('*') ? world.hosts() : world.wildcards()).some((each) => hostsOverlap(host, each))
