/** The platform and locality of the workload, from its settings alone; no cloud metadata server is queried (docs/agent.md, B9). */
import { localityLabel } from '../names/mesh-names.ts'

/** The parts of a node's locality. Unknown parts are absent. */
export interface Locality {
  readonly region?: string
  readonly zone?: string
  readonly subZone?: string
}

/**
 * Returns the platform metadata of `CLOUD_METADATA` and `CLOUD_CLUSTER_URL`, under the names that telemetry uses. The first must have
 * exactly four parts (project, project number, cluster, zone of the cluster), otherwise it is ignored.
 */
export function platformMetadata(cloudMetadata: string, clusterUrl: string): Record<string, string> {
  const parts = cloudMetadata.split('|')
  const [project = '', number = '', cluster = '', zone = ''] = parts.length === 4 ? parts : []
  const all = { gcp_project: project, gcp_project_number: number, gcp_gke_cluster_name: cluster, gcp_location: zone, gcp_gke_cluster_url: clusterUrl }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

/** Returns the workload's locality: from the label `mesh-locality` (`a/b/c`, or `a.b.c` without a slash), or else from the cloud's zone. */
export function localityOf(labels: unknown, platform: Readonly<Record<string, string>>): Locality {
  const label = typeof labels === 'object' && labels !== null ? localityLabel(labels as Record<string, unknown>) : undefined
  if (label) {
    const [region, zone, subZone] = label.split('/')
    return { ...(region && { region }), ...(zone && { zone }), ...(subZone && { subZone }) }
  }
  const { gcp_location: zone } = platform
  // The name of a zone is its region, a hyphen and a letter. Regional clusters report the region instead of a zone.
  const region = zone && /^(.+)-[a-z]$/.exec(zone)?.[1]
  if (!zone) return {}
  return region ? { region, zone } : { region: zone }
}
