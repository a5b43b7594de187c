/** Finds Sidecars of which only one can count, and hosts that they import and that are not there. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import { hostsOverlap } from '../model/match.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

/** Tells the hosts that a Sidecar imports and that no service has. */
export function analyzeSidecar({ namespace, spec }: ConfigObject<SidecarSpec>, world: World, tell: Tell): void {
  for (const [index, { hosts }] of (spec.egress ?? []).entries())
    for (const [number, written] of hosts.entries()) {
      const slash = written.indexOf('/')
      const [scope, host] = [written.slice(0, slash), written.slice(slash + 1)]
      const at = `spec.egress[${index}].hosts[${number}]`
      if (scope.startsWith('~')) continue
      const owner = scope === '.' ? namespace : scope
      if (owner !== '*' && world.namespaces && !world.namespaces.has(owner))
        tell('IST0101', at, `there is no namespace ${owner}, so nothing is imported`)
      else if (host !== '*' && !world.hosts().some((each) => hostsOverlap(host, each)))
        tell('IST0101', at, `there is no service ${host}, so nothing is imported`)
    }
}

/** Tells the Sidecars of a namespace that select the same workloads, or all of them. */
export function analyzeSidecars(world: World, tellOf: (object: ConfigObject) => Tell): void {
  const groups = Map.groupBy(world.objects('Sidecar') as readonly ConfigObject<SidecarSpec>[], ({ namespace, spec: { workloadSelector } }) => {
    const labels = workloadSelector?.labels ?? workloadSelector?.matchLabels ?? {}
    return JSON.stringify([namespace, Object.entries(labels).sort()])
  })
  for (const [group, sidecars] of groups) {
    if (sidecars.length < 2) continue
    const isDefault = (JSON.parse(group) as [string, []])[1].length === 0
    for (const sidecar of sidecars) {
      const others = sidecars.filter((other) => other !== sidecar).map(({ name }) => name)
      const message = isDefault
        ? `the Sidecar ${others.join(', ')} of this namespace has no workloadSelector either: only the oldest counts`
        : `the Sidecar ${others.join(', ')} of this namespace selects the same workloads: only the oldest counts`
      tellOf(sidecar)(isDefault ? 'IST0111' : 'IST0110', isDefault ? 'spec' : 'spec.workloadSelector', message)
    }
  }
}
