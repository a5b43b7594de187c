/** Converts ServiceEntry and WorkloadEntry objects into services and endpoints (docs/resources.md, S1 to S4). */

import type { ConfigObject, Endpoint, Pod, Protocol, Readiness, Resolution, Service, ServicePort } from '../../protocols/data.ts'
import { canonicalAddress } from '../config/addresses.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import type { WorkloadEntrySpec } from '../config/kinds/workload-entry.ts'
import { selectProtocol } from '../model/protocol.ts'
import { localityLabel, type MeshNames } from '../names/mesh-names.ts'

export type ServiceEntry = ConfigObject<ServiceEntrySpec>
export type WorkloadEntry = ConfigObject<WorkloadEntrySpec>

/** What is read of a WorkloadEntry, and of a pod as one. */
export interface Workload extends Pick<ConfigObject, 'namespace' | 'name' | 'labels' | 'createdAt'> {
  readonly spec: WorkloadEntrySpec
  /** Whether it takes no traffic; a pod says that in `ofPod`. */
  readonly isUnready?: boolean
  /** Of a pod: what its endpoints have beside the spec. */
  readonly ofPod?: Pick<Endpoint, 'node' | 'cluster' | 'readiness'>
}

const resolutions: Readonly<Record<string, Resolution>> = { NONE: 'passthrough', STATIC: 'static', DNS: 'dns', DNS_ROUND_ROBIN: 'dns' }

/** Returns the services of a ServiceEntry: one for each host. */
export function servicesOf(entry: ServiceEntry): Service[] {
  const spec = entry.spec
  const ports = (spec.ports ?? []).map((port): ServicePort => {
    const protocol: Protocol = selectProtocol(port.protocol, port.name, port.number)
    return { number: port.number, name: port.name, protocol, targetPort: port.targetPort ?? 0 }
  })
  return spec.hosts.map((host) => ({
    hostname: host.toLowerCase(),
    namespace: entry.namespace,
    name: entry.name,
    provider: 'ServiceEntry',
    cluster: '',
    addresses: [...new Set((spec.addresses ?? []).map((address) => canonicalAddress(single(address))))],
    ports,
    resolution: resolutions[spec.resolution ?? 'NONE'] ?? 'passthrough',
    external: spec.location !== 'MESH_INTERNAL',
    exportTo: spec.exportTo ?? [],
    serviceAccounts: spec.subjectAltNames ?? [],
    selector: spec.workloadSelector ? (spec.workloadSelector.labels ?? {}) : undefined,
    createdAt: entry.createdAt,
  }))
}

/** Converts a CIDR of a single address to the address. */
const single = (address: string): string => address.replace(address.includes(':') ? /\/128$/ : /\/32$/, '')

/**
 * Returns the endpoints of a ServiceEntry without a selector, which are the same for all its hosts. Undefined where each host is its own
 * endpoint, resolved by DNS.
 */
export function endpointsOf({ spec, namespace }: ServiceEntry, names: MeshNames): Endpoint[] | undefined {
  if (spec.endpoints?.length) return spec.endpoints.map((endpoint) => endpointOf(endpoint, namespace, '', names))
  return spec.resolution?.startsWith('DNS') ? undefined : []
}

/** Returns the endpoint of a workload. */
export function workloadEndpoint(workload: Workload, names: MeshNames): Endpoint {
  const endpoint = endpointOf({ ...workload.spec, labels: workloadLabels(workload) }, workload.namespace, workload.name, names)
  if (!workload.ofPod) return workload.isUnready ? { ...endpoint, readiness: 'unready' } : endpoint
  // Without a proxy beside it, which the label tells, a pod accepts no mutual TLS, whatever its service account.
  const mode = `security.${names.domain}/tlsMode`
  return {
    ...endpoint,
    ...workload.ofPod,
    labels: Object.hasOwn(endpoint.labels, mode) ? endpoint.labels : { ...endpoint.labels, [mode]: 'disabled' },
  }
}

/**
 * Returns a WorkloadEntry as a workload (docs/resources.md, S3). `checksHealth`: one whose health is checked, as its annotation says, takes traffic
 * only while its status says that it is healthy.
 */
export function workloadOfEntry(entry: WorkloadEntry, { domain }: MeshNames, checksHealth: boolean): Workload {
  const isChecked = checksHealth && entry.annotations[`proxy.${domain}/health-checks-enabled`] === 'true'
  return isChecked && entry.healthy !== true ? { ...entry, isUnready: true } : entry
}

/** Returns a pod as a workload that entries can select (docs/resources.md, O5). Undefined before it has an address, and when it has ended. */
export function workloadOf({ namespace, name, labels, createdAt, cluster, spec }: Pod): Workload | undefined {
  const { addresses, node, serviceAccount, readiness } = spec
  const [address] = addresses
  if (address === undefined) return undefined
  const ofPod = {
    ...(node !== '' && { node }),
    ...(cluster !== '' && { cluster }),
    ...(readiness !== 'ready' && { readiness: readiness as Readiness }),
  }
  return { namespace, name, labels, createdAt, spec: { address, serviceAccount }, ofPod }
}

/** Returns a host as its own endpoint, resolved by DNS. */
export function hostEndpoint({ hostname, namespace }: Service, names: MeshNames): Endpoint {
  return endpointOf({ address: hostname }, namespace, '', names)
}

/** Returns the labels of a workload. Those of its spec override those of its metadata. */
export function workloadLabels(workload: Workload): Record<string, string> {
  return { ...workload.labels, ...workload.spec.labels }
}

function endpointOf(spec: WorkloadEntrySpec, namespace: string, workload: string, names: MeshNames): Endpoint {
  const labels = spec.labels ?? {}
  return {
    address: spec.address ?? '',
    ports: spec.ports ?? {},
    labels,
    locality: spec.locality ?? localityLabel(labels) ?? '',
    network: spec.network ?? labels[`topology.${names.domain}/network`] ?? '',
    weight: spec.weight ?? 0,
    serviceAccount: spec.serviceAccount ?? '',
    namespace,
    workload,
  }
}
