/** The registry of ServiceEntries and WorkloadEntries: updates the services that they define, namespace by namespace. */
import type { Faults } from '../model/faults.ts'
import { byAge } from '../model/order.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { MergedServices, ServiceRecord } from './merged-services.ts'
import { endpointsOf, hostEndpoint, type ServiceEntry, servicesOf, type WorkloadEntry } from './service-entries.ts'
import { slicesOf } from './slices.ts'

/** The selectors and workloads of one namespace. */
interface Namespace {
  /** Entries with a selector, by key. */
  readonly selecting: Map<string, ServiceEntry>
  /** Workloads by key. */
  readonly workloads: Map<string, WorkloadEntry>
}

/** Converts entries into service records and passes these to the merged services. */
export class EntryRegistry {
  readonly #services: MergedServices
  readonly #names: MeshNames
  readonly #faults: Faults
  readonly #namespaces = new Map<string, Namespace>()
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
    const workloads = entry.spec.workloadSelector ? [...(this.#namespaces.get(entry.namespace)?.workloads.values() ?? [])].sort(byAge) : []
    const endpoints = endpointsOf(entry, workloads, this.#names)
    return servicesOf(entry).map((service) => ({ service, slices: slicesOf(endpoints ?? [hostEndpoint(service, this.#names)]) }))
  }

  /** Sets an entry with its records, or removes it. */
  setEntry(key: string, before: ServiceEntry | undefined, now: ServiceEntry | undefined, records: readonly ServiceRecord[]): void {
    if (before) this.#change(before.namespace, ({ selecting }) => selecting.delete(key))
    if (now?.spec.workloadSelector) this.#change(now.namespace, ({ selecting }) => selecting.set(key, now))
    this.#setRecords(key, records)
    this.#faults.clear(`workloads|${key}`)
  }

  /** Sets or removes a workload. Selectors are evaluated by {@link reselect}. */
  setWorkload(key: string, before: WorkloadEntry | undefined, now: WorkloadEntry | undefined): void {
    for (const workload of [before, now]) {
      if (!workload) continue
      this.#touched.add(workload.namespace)
      this.#change(workload.namespace, ({ workloads }) => (workload === now ? workloads.set(key, workload) : workloads.delete(key)))
    }
  }

  /** Evaluates the selectors of all entries in namespaces whose workloads changed. An entry for which that fails keeps its endpoints. */
  reselect(): void {
    for (const namespace of this.#touched)
      for (const [key, entry] of this.#namespaces.get(namespace)?.selecting ?? []) {
        const subject = { type: 'object', resource: key, objects: [key] }
        this.#faults.attempt(`workloads|${key}`, subject, () => this.#setRecords(key, this.recordsOf(entry)), undefined, true)
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

  #change(name: string, change: (namespace: Namespace) => void): void {
    const namespace = this.#namespaces.get(name) ?? { selecting: new Map(), workloads: new Map() }
    change(namespace)
    if (namespace.selecting.size + namespace.workloads.size > 0) this.#namespaces.set(name, namespace)
    else this.#namespaces.delete(name)
  }
}
