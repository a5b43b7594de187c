/**
 * The service instances of proxies' own workloads (docs/resources.md, P6). Reads are recorded by address and by label, so that a changed
 * endpoint finds the proxies at its address, and a changed Service those that it may select.
 */
import type { Pod, ProxyNode } from '../../../protocols/data.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import type { ServicesByHost } from '../../registry/merged-services.ts'
import { InstanceIndex, isOfOrchestrator, type LabelledWorkload, placesOf } from '../../snapshot/instances.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Dependencies, Topic } from '../dependencies/dependencies.ts'

/** What of a proxy its instances are found by. */
type InstanceNode = Pick<ProxyNode, 'addresses' | 'namespace' | 'labels' | 'clusterId' | 'metadata'>

/** Finds the instances of proxies. */
export class OwnInstances {
  readonly #record: Dependencies<MeshSnapshot>
  readonly #index = new InstanceIndex()
  /** Questions about the instances at an address, and of labels. The index is changed in place, so no answers are compared. */
  readonly #atAddress: Topic<MeshSnapshot, undefined> = { of: () => undefined }
  readonly #selecting: Topic<MeshSnapshot, undefined> = { of: () => undefined }

  constructor(record: Dependencies<MeshSnapshot>) {
    this.#record = record
  }

  /** The instances of a proxy. `pod`: its pod, if one is known. */
  of(node: InstanceNode, pod: Pod | undefined): readonly ServiceInstance[] {
    const { addresses, namespace } = node
    const isOptedOut = this.#record.state.settings.optOuts.has('own-namespace-instances')
    for (const address of addresses) this.#record.read(this.#atAddress, address, unanswered)
    const listed = this.#index.of(addresses, isOptedOut ? undefined : namespace)
    const [first] = addresses
    if (first !== undefined && this.#index.hasWorkloadEntry(first)) return listed
    // What lists the address of a pod is asked only where nothing selects the pod: the labels of the pod are the newer truth.
    if (!pod && listed.some(isOfOrchestrator)) return listed
    const workload = pod ? workloadOfPod(pod) : workloadOfNode(node)
    for (const place of placesOf(workload)) this.#record.read(this.#selecting, place, unanswered)
    const selected = this.#index.selecting(workload, addresses)
    return selected.length > 0 ? sorted([...listed.filter((each) => !isOfOrchestrator(each)), ...selected]) : listed
  }

  /** Replaces the services of some hosts. What read instances that may have changed is outdated. */
  update(hosts: Iterable<string>, services: ServicesByHost): void {
    for (const host of hosts) {
      const { addresses, places } = this.#index.update(host, services.get(host))
      this.#record.changedInPlace(this.#atAddress, addresses)
      this.#record.changedInPlace(this.#selecting, places)
    }
  }
}

const unanswered = () => undefined

const sorted = (instances: ServiceInstance[]): ServiceInstance[] =>
  instances.sort(({ service: one }, { service: other }) => (one.hostname < other.hostname ? -1 : one.hostname > other.hostname ? 1 : 0))

const workloadOfPod = ({ namespace, labels, cluster, spec }: Pod): LabelledWorkload => ({
  ...{ namespace, labels, cluster, serviceAccount: spec.serviceAccount, ports: spec.ports ?? {} },
})

/** What the metadata of a proxy whose pod is not known says: its labels, and the ports of its containers (`POD_PORTS`). */
function workloadOfNode({ namespace, labels = {}, clusterId, metadata }: InstanceNode): LabelledWorkload {
  return { namespace, labels, cluster: clusterId, serviceAccount: '', ports: podPorts(metadata.POD_PORTS) }
}

/** The largest number of ports that are read. */
const mostPorts = 1000

/** The named ports in `POD_PORTS`, a list of container ports as it is in a pod, or the text of one. */
function podPorts(given: unknown): Record<string, number> {
  const ports: Record<string, number> = {}
  for (const each of listIn(given).slice(0, mostPorts)) {
    const { name, containerPort, protocol = 'TCP' } = (each ?? {}) as Readonly<Record<string, unknown>>
    const isPort = Number.isInteger(containerPort) && (containerPort as number) > 0 && (containerPort as number) < 65_536
    if (typeof name === 'string' && isPort && protocol === 'TCP' && !Object.hasOwn(ports, name)) ports[name] = containerPort as number
  }
  return ports
}

function listIn(given: unknown): readonly unknown[] {
  if (typeof given !== 'string') return Array.isArray(given) ? given : []
  try {
    const value: unknown = JSON.parse(given)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
