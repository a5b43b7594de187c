/** Finds Sidecars of which only one can count, and hosts that they import and that are not there. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import { hostsOverlap } from '../model/match.ts'
import { sidecarsOf } from './claims.ts'
import type { Tell } from './finding.ts'
import { isAbsent, listed, tellNoNamespace } from './references.ts'
import { selectorPath } from './selectors.ts'
import type { World } from './world.ts'

/** Tells the hosts that a Sidecar imports and that no service has, and other Sidecars for the same workloads. */
export function analyzeSidecar(sidecar: ConfigObject<SidecarSpec>, world: World, tell: Tell): void {
  const { namespace, spec } = sidecar
  checkOthers(sidecar, world, tell)
  for (const [index, { hosts }] of (spec.egress ?? []).entries())
    for (const [number, written] of hosts.entries()) {
      const slash = written.indexOf('/')
      const [scope, host] = [written.slice(0, slash), written.slice(slash + 1)]
      const at = `spec.egress[${index}].hosts[${number}]`
      if (scope.startsWith('~')) continue
      const owner = scope === '.' ? namespace : scope
      if (owner !== '*' && tellNoNamespace(owner, ', so nothing is imported', { at, world, tell })) continue
      if (host !== '*' && !isThere(host, world) && isAbsent(host, world)) tell('IST0101', at, `there is no service ${host}, so nothing is imported`)
    }
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
