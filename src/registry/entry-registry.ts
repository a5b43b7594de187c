/** The registry of ServiceEntries and WorkloadEntries: updates the services that they define, namespace by namespace. */
import type { Endpoint } from '../../protocols/data.ts'
import type { Faults } from '../model/faults.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { MergedServices, ServiceRecord } from './merged-services.ts'
import { endpointsOf, hostEndpoint, type ServiceEntry, servicesOf, type Workload } from './service-entries.ts'
import { slicesOf } from './slices.ts'
import { WorkloadIndex } from './workload-index.ts'

/** Converts entries into service records and passes these to the merged services. */
export class EntryRegistry {
  readonly #services: MergedServices
  readonly #names: MeshNames
  readonly #faults: Faults
  readonly #namespaces = new Map<string, WorkloadIndex>()
  /** Namespaces whose workloads changed since the last {@link reselect}. */
  readonly #touched = new Set<string>()
  /** Keys of services by the entry that defines them. */
  readonly #held = new Map<string, ReadonlySet<string>>()

  constructor(services: MergedServices, names: MeshNames, faults: Faults) {
    this.#services = services
    this.#names = names
    this.#faults = faults
  }

  /** Returns the service record of each host of an entry. Throws when the entry cannot be read. */
  recordsOf(entry: ServiceEntry): ServiceRecord[] {
    if (!entry.spec.workloadSelector) return this.#records(entry, endpointsOf(entry, this.#names))
    return this.#records(entry, this.#namespaces.get(entry.namespace)?.endpointsOf(entry) ?? [])
  }

  /** Returns the records for given endpoints. Undefined: each host is its own endpoint. */
  #records(entry: ServiceEntry, endpoints: readonly Endpoint[] | undefined): ServiceRecord[] {
    return servicesOf(entry).map((service) => ({ service, slices: slicesOf(endpoints ?? [hostEndpoint(service, this.#names)]) }))
  }

  /** Sets an entry with its records, or removes it. */
  setEntry(key: string, before: ServiceEntry | undefined, now: ServiceEntry | undefined, records: readonly ServiceRecord[]): void {
    if (before?.spec.workloadSelector) this.#change(before.namespace, (index) => index.setEntry(key, undefined))
    if (now?.spec.workloadSelector) this.#change(now.namespace, (index) => index.setEntry(key, now))
    this.#setRecords(key, records)
    this.#faults.clear(`workloads|${key}`)
  }

  /** Sets or removes a workload. Selectors are evaluated by {@link reselect}. */
  setWorkload(key: string, before: Workload | undefined, now: Workload | undefined): void {
    for (const { namespace } of [now ?? [], before ?? []].flat()) this.#touched.add(namespace)
    if (before && before.namespace !== now?.namespace) this.#change(before.namespace, (index) => index.setWorkload(key, undefined))
    if (now) this.#change(now.namespace, (index) => index.setWorkload(key, now))
  }

  /**
   * Evaluates the selectors of the entries that select a changed workload, before or after the change. An entry for which that fails keeps
   * its endpoints.
   */
  reselect(): void {
    for (const namespace of this.#touched) {
      const index = this.#namespaces.get(namespace)
      for (const [key, entry, workloads] of index?.takeTouched() ?? []) {
        const subject = { type: 'object', resource: key, objects: [key] }
        const reselect = () => this.#setRecords(key, this.#records(entry, index?.endpointsAfter(key, entry, workloads)))
        this.#faults.attempt(`workloads|${key}`, subject, reselect, undefined, true)
      }
    }
    this.#touched.clear()
  }

  #setRecords(key: string, records: readonly ServiceRecord[]): undefined {
    const now = new Map(records.map((record) => [`${record.service.namespace}/${record.service.hostname}`, record]))
    for (const held of this.#held.get(key) ?? []) if (!now.has(held)) this.#services.set(key, held, undefined)
    for (const [service, record] of now) this.#services.set(key, service, record)
    if (now.size > 0) this.#held.set(key, new Set(now.keys()))
    else this.#held.delete(key)
  }

  #change(namespace: string, change: (index: WorkloadIndex) => void): void {
    const index = this.#namespaces.get(namespace) ?? new WorkloadIndex(this.#names)
    change(index)
    if (index.isEmpty) this.#namespaces.delete(namespace)
    else this.#namespaces.set(namespace, index)
  }
}
