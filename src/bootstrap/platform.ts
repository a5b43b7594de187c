/** Where the workload runs, from what its settings say; no metadata server of a cloud is asked (docs/agent.md, B9). */
import { localityLabel } from '../names/mesh-names.ts'

/** Parts of the locality of a node; the ones that are not known are missing. */
export interface Locality {
  readonly region?: string
  readonly zone?: string
  readonly subZone?: string
}

/**
 * What `CLOUD_METADATA` and `CLOUD_CLUSTER_URL` say of the cloud, with the names under which telemetry knows it. The first must have exactly four parts
 * (project, its number, cluster, its zone), otherwise it is not taken.
 */
export function platformMetadata(cloudMetadata: string, clusterUrl: string): Record<string, string> {
  const parts = cloudMetadata.split('|')
  const [project = '', number = '', cluster = '', zone = ''] = parts.length === 4 ? parts : []
  const all = { gcp_project: project, gcp_project_number: number, gcp_gke_cluster_name: cluster, gcp_location: zone, gcp_gke_cluster_url: clusterUrl }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

/** The locality of a workload: the label `mesh-locality` (`a/b/c`, or `a.b.c` without a slash), else the zone of the cloud. */
export function localityOf(labels: unknown, platform: Readonly<Record<string, string>>): Locality {
  const label = typeof labels === 'object' && labels !== null ? localityLabel(labels as Record<string, unknown>) : undefined
  if (label) {
    const [region, zone, subZone] = label.split('/')
    return { ...(region && { region }), ...(zone && { zone }), ...(subZone && { subZone }) }
  }
  const { gcp_location: zone } = platform
  // A zone is named after its region, with a letter behind the last hyphen; clusters of a whole region say the region alone.
  const region = zone && /^(.+)-[a-z]$/.exec(zone)?.[1]
  if (!zone) return {}
  return region ? { region, zone } : { region: zone }
}
