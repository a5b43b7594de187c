/** The service instances of proxies' own workloads. Reads are recorded by address, so that a changed endpoint finds the proxies at its address. */
import type { ProxyNode } from '../../../protocols/data.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import type { ServicesByHost } from '../../registry/merged-services.ts'
import { InstanceIndex } from '../../snapshot/instances.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Dependencies, Topic } from '../dependencies/dependencies.ts'

/** Finds the instances of proxies. */
export class OwnInstances {
  readonly #record: Dependencies<MeshSnapshot>
  readonly #index = new InstanceIndex()
  /** Questions about the instances at an address. The index is changed in place, so no answers are compared. */
  readonly #atAddress: Topic<MeshSnapshot, undefined> = { of: () => undefined }

  constructor(record: Dependencies<MeshSnapshot>) {
    this.#record = record
  }

  /** The instances of a proxy. */
  of({ addresses, namespace }: Pick<ProxyNode, 'addresses' | 'namespace'>): readonly ServiceInstance[] {
    const isOptedOut = this.#record.state.settings.optOuts.has('own-namespace-instances')
    for (const address of addresses) this.#record.read(this.#atAddress, address, unanswered)
    return this.#index.of(addresses, isOptedOut ? undefined : namespace)
  }

  /** Replaces the services of some hosts. What read instances that may have changed is outdated. */
  update(hosts: Iterable<string>, services: ServicesByHost): void {
    for (const host of hosts) this.#record.changedInPlace(this.#atAddress, this.#index.update(host, services.get(host)))
  }
}

const unanswered = () => undefined
