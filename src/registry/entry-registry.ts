/**
 * The registry of ServiceEntries and WorkloadEntries: updates the services that they define, namespace by namespace, and the endpoints that
 * Services of the orchestrator have by selecting WorkloadEntries (docs/resources.md, O10).
 */
import type { Endpoint, Service } from '../../protocols/data.ts'
import type { Faults } from '../model/faults.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { type MergedServices, registryName, type ServiceRecord } from './merged-services.ts'
import { endpointsOf, hostEndpoint, type ServiceEntry, servicesOf, type Workload } from './service-entries.ts'
import { selectedSlices, slicesOf } from './slices.ts'
import { type Selector, WorkloadIndex } from './workload-index.ts'

const selectorOf = ({ spec }: ServiceEntry): Selector => ({ labels: spec.workloadSelector?.labels ?? {}, takesPods: true })
/** The source of the endpoints that a Service of a source has by selecting WorkloadEntries. */
const selectedSource = (source: string): string => `${source} WorkloadEntries`

/** A Service that selects WorkloadEntries. */
interface SelectingService {
  readonly source: string
  readonly key: string
  readonly service: Service
}

/** Converts entries into service records and passes these to the merged services. */
export class EntryRegistry {
  readonly #services: MergedServices
  readonly #names: MeshNames
  readonly #faults: Faults
  readonly #namespaces = new Map<string, WorkloadIndex>()
  /** Namespaces whose workloads changed since the last {@link reselect}. */
  readonly #touched = new Set<string>()
  /** The entries that select workloads, and the Services that do, by their keys in the index of their namespace. */
  readonly #entries = new Map<string, ServiceEntry>()
  readonly #selecting = new Map<string, SelectingService>()
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
    return this.#records(entry, this.#namespaces.get(entry.namespace)?.endpointsOf(selectorOf(entry)) ?? [])
  }

  /** Returns the records for given endpoints. Undefined: each host is its own endpoint. */
  #records(entry: ServiceEntry, endpoints: readonly Endpoint[] | undefined): ServiceRecord[] {
    return servicesOf(entry).map((service) => ({ service, slices: slicesOf(endpoints ?? [hostEndpoint(service, this.#names)]) }))
  }

  /** Sets an entry with its records, or removes it. */
  setEntry(key: string, before: ServiceEntry | undefined, now: ServiceEntry | undefined, records: readonly ServiceRecord[]): void {
    if (before?.spec.workloadSelector) this.#change(before.namespace, (index) => index.setEntry(key, undefined))
    if (now?.spec.workloadSelector) this.#change(now.namespace, (index) => index.setEntry(key, selectorOf(now)))
    if (now?.spec.workloadSelector) this.#entries.set(key, now)
    else this.#entries.delete(key)
    this.#setRecords(key, records)
    this.#faults.clear(`workloads|${key}`)
  }

  /** Sets or removes a service of a source; a Service of a cluster may select WorkloadEntries of its namespace. */
  setService(source: string, key: string, service: Service | undefined): void {
    const id = `${source} ${key}`
    const before = this.#selecting.get(id)
    // The endpoints that are added here come back as those of another source.
    const isOwn = service && source === registryName(service) && service.provider === 'Orchestrator'
    const now = isOwn && service.selector && service.resolution !== 'dns' ? { source, key, service } : undefined
    const of = now ?? before
    if (!of) return
    const labels = now?.service.selector ?? {}
    const { namespace } = of.service
    if (now) this.#selecting.set(id, now)
    else this.#selecting.delete(id)
    if (!before || !now || JSON.stringify(before.service.selector) !== JSON.stringify(labels))
      this.#change(namespace, (index) => index.setEntry(id, now && { labels, takesPods: false }))
    const endpoints = now ? (this.#namespaces.get(namespace)?.endpointsAfter(id, new Set()) ?? []) : []
    this.#setSelected({ source, key, service: service as Service }, endpoints)
  }

  #setSelected({ source, key, service }: SelectingService, endpoints: readonly Endpoint[]): undefined {
    const record = endpoints.length > 0 ? { service, slices: selectedSlices(endpoints, service.ports) } : undefined
    this.#services.set(selectedSource(source), key, record)
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
      for (const [key, workloads] of index?.takeTouched() ?? []) {
        const subject = { type: 'object', resource: key, objects: [key] }
        const reselect = () => this.#reselect(key, index?.endpointsAfter(key, workloads) ?? [])
        this.#faults.attempt(`workloads|${key}`, subject, reselect, undefined, true)
      }
    }
    this.#touched.clear()
  }

  #reselect(key: string, endpoints: readonly Endpoint[]): undefined {
    const [entry, selecting] = [this.#entries.get(key), this.#selecting.get(key)]
    if (entry) this.#setRecords(key, this.#records(entry, endpoints))
    else if (selecting) this.#setSelected(selecting, endpoints)
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
