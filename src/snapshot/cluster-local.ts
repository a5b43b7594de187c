/** Which hosts have only the endpoints of the caller's own cluster (docs/resources.md, E11). */
import type { MeshConfig } from '../config/mesh-config.ts'
import { bySpecificity, hostCovers } from '../model/match.ts'
import type { MeshSnapshot, Settings } from './snapshot.ts'

/** A pattern of host names, and whether those that it covers are local. The most specific pattern is first. */
type Rules = readonly (readonly [pattern: string, isLocal: boolean])[]

const rulesOf = new WeakMap<MeshConfig, Map<string, Rules>>()

/** Whether a host has only the endpoints of the caller's cluster: the most specific pattern for it says so; of equal ones the last. */
export function isClusterLocal(
  host: string,
  { mesh, settings }: Pick<MeshSnapshot, 'mesh'> & { readonly settings: Pick<Settings, 'domain'> },
): boolean {
  const byDomain = rulesOf.get(mesh) ?? new Map<string, Rules>()
  const rules = byDomain.get(settings.domain) ?? clusterLocalRules(mesh, settings.domain)
  byDomain.set(settings.domain, rules)
  rulesOf.set(mesh, byDomain)
  return rules.find(([pattern]) => hostCovers(pattern, host))?.[1] ?? false
}

function clusterLocalRules({ serviceSettings = [], defaultConfig }: MeshConfig, domain: string): Rules {
  const discovery = (defaultConfig.discoveryAddress ?? '').replace(/:\d+$/, '').toLowerCase()
  const defaults = [`*.kube-system.svc.${domain}`, `kubernetes.default.svc.${domain}`]
  if (discovery !== '') defaults.push(discovery.endsWith('.svc') ? `${discovery}.${domain}` : discovery)
  const rules = new Map(defaults.map((pattern) => [pattern, true]))
  for (const { settings, hosts = [] } of serviceSettings) for (const host of hosts) rules.set(host.toLowerCase(), settings?.clusterLocal ?? false)
  return [...rules].sort(([one], [other]) => bySpecificity(one, other))
}
