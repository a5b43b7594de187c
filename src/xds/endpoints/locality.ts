/** Locality-aware load balancing: weights from `distribute`, priorities from `failover` (docs/resources.md, E6, E10). */
import type { LocalityLb } from '../../config/shapes/connections.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { PolicyInForce } from '../clusters/traffic-policy.ts'

/** The settings of a service that prefers endpoints near its callers: priorities alone. */
const preferred: LocalityLb = { enabled: true }

/** Returns the effective locality settings; undefined if there are none or they are disabled. */
export function localitySettings(policy: PolicyInForce, snapshot: MeshSnapshot): LocalityLb | undefined {
  const settings = policy.loadBalancer?.localityLbSetting ?? (policy.distribution ? preferred : snapshot.mesh.localityLbSetting)
  return settings?.enabled === false ? undefined : settings
}

/** Whether the cluster must enable locality weights, which Envoy otherwise ignores. */
export function usesLocalityWeights(policy: PolicyInForce, snapshot: MeshSnapshot): boolean {
  const settings = localitySettings(policy, snapshot)
  return settings?.distribute?.length ? true : settings !== undefined && policy.outlierDetection !== undefined && settings.failover !== undefined
}

/** Whether the endpoints of the cluster depend on the locality of the proxy. */
export function dependsOnLocality(policy: PolicyInForce, snapshot: MeshSnapshot): boolean {
  if (policy.distribution) return true
  const settings = localitySettings(policy, snapshot)
  if (settings?.distribute?.length) return true
  const off =
    policy.loadBalancer?.localityLbSetting?.enabled === false ||
    (!policy.loadBalancer?.localityLbSetting && snapshot.mesh.localityLbSetting?.enabled === false)
  return !off && policy.outlierDetection !== undefined
}

/** A locality with the weight and priority of its endpoints. */
export interface PlacedLocality {
  readonly locality: string
  /** Whether it has only endpoints on the caller's node, which come first. */
  readonly isNear: boolean
  weight: number
  priority: number
}

/**
 * Sets weights or priorities of localities for a proxy in the locality `own`. With `distribute`, localities without a share are dropped.
 */
export function placeLocalities(groups: PlacedLocality[], own: string, policy: PolicyInForce, snapshot: MeshSnapshot): PlacedLocality[] {
  const settings = localitySettings(policy, snapshot)
  const rule = settings?.distribute?.find((entry) => covers(entry.from, own))
  if (rule) return distribute(groups, rule.to)
  if (own === '') return byPriority(groups.map((group) => ({ ...group, priority: group.isNear ? 0 : 1 })))
  if (!dependsOnLocality(policy, snapshot)) return groups
  // What a service prefers holds without outlier detection: its endpoints elsewhere are used when there is none here.
  if (settings?.distribute?.length || (policy.outlierDetection === undefined && !policy.distribution)) return groups
  return failover(groups, own, settings)
}

function distribute(groups: PlacedLocality[], to: Readonly<Record<string, number>>): PlacedLocality[] {
  const placed: PlacedLocality[] = []
  const left = new Set(groups)
  for (const [pattern, share] of Object.entries(to)) {
    const matched = [...left].filter((group) => covers(pattern, group.locality))
    const total = matched.reduce((sum, group) => sum + group.weight, 0)
    for (const group of matched) {
      left.delete(group)
      placed.push({ ...group, weight: Math.max(1, Math.ceil((group.weight / total) * share)) })
    }
  }
  return placed
}

function failover(groups: PlacedLocality[], own: string, settings: LocalityLb | undefined): PlacedLocality[] {
  const [region = '', zone = '', subzone = ''] = own.split('/')
  const preferred = settings?.failover?.find((entry) => entry.from === region)?.to
  const ranked = groups.map((group) => {
    const [otherRegion = '', otherZone = '', otherSubzone = ''] = group.locality.split('/')
    let priority = 3
    if (group.isNear) priority = -1
    else if (otherRegion === region) priority = otherZone !== zone ? 2 : otherSubzone !== subzone ? 1 : 0
    else if (preferred !== undefined && otherRegion !== preferred) priority = 4
    return { ...group, priority }
  })
  return byPriority(ranked)
}

/** Numbers priorities without gaps. */
function byPriority(ranked: readonly PlacedLocality[]): PlacedLocality[] {
  const used = [...new Set(ranked.map((group) => group.priority))].sort((one, other) => one - other)
  return ranked.map((group) => ({ ...group, priority: used.indexOf(group.priority) }))
}

/** Whether a locality pattern (`*`, `region/*`, `region/zone`) covers a locality. */
function covers(pattern: string, locality: string): boolean {
  if (pattern === '*' || pattern === locality) return true
  const parts = pattern.split('/')
  const given = locality.split('/')
  return parts.every((part, index) => part === '*' || part === given[index])
}
