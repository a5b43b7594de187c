/**
 * Services and endpoints of all sources, merged (docs/resources.md, S9). A source is a registry of a cluster, or one object in it. Only what
 * sources said since the last merge is merged again; what did not change keeps its identity.
 */
import type { Endpoint, RegistryId, Service, ServicePort } from '../../protocols/data.ts'
import { leadsToCaller } from '../config/addresses.ts'
import type { Faults } from '../model/faults.ts'
import { append, sameItems } from '../model/lists.ts'
import { compare } from '../model/order.ts'
import { PatchedMap } from '../model/patched-map.ts'
import { portOf } from '../model/workload.ts'

/** What one source says of one service. */
export interface ServiceRecord {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

/** The endpoints that one registry of one cluster has of a service. */
export interface Shard extends RegistryId {
  readonly endpoints: readonly Endpoint[]
}

/** A service with its endpoints from all sources. All parts keep their identity while unchanged. */
export interface ServiceState {
  readonly service: Service
  /** Those of all shards, one shard after the other. */
  readonly endpoints: readonly Endpoint[]
  /** Sorted by cluster, then provider. */
  readonly shards: readonly Shard[]
  /** Whether some endpoint leads every caller to its own machine: not all callers are given those (docs/resources.md, E7). */
  readonly hasLocalEndpoints: boolean
}

/** Services by host name; several when namespaces define the same host, the oldest first, then by namespace. */
export type ServicesByHost = ReadonlyMap<string, readonly ServiceState[]>

/** What came of a merge. */
export interface Merge {
  readonly services: ServicesByHost
  /** A number that changes with the definition of any service and with whether it has endpoints on the machine of its callers, and not with other endpoints. */
  readonly definitions: number
  /** Hosts of which anything changed. */
  readonly hosts: ReadonlySet<string>
  /** Those of them where more changed than load assignments show. */
  readonly redefined: ReadonlySet<string>
}

/** A registry as part of keys and pages: `<provider>/<cluster>`, or the provider alone where there is no cluster. */
export const registryName = ({ provider, cluster }: RegistryId): string => (cluster === '' ? provider : `${provider}/${cluster}`)

/** Takes what sources say of services, and merges it. Keys of services are `<namespace>/<hostname>`. */
export class MergedServices {
  readonly #faults: Faults
  /** Records by service and source. */
  readonly #records = new Map<string, Map<string, ServiceRecord>>()
  readonly #touched = new Set<string>()
  #onlyEndpoints = true
  #services = PatchedMap.empty<string, readonly ServiceState[]>()
  #definitions = 0

  constructor(faults: Faults) {
    this.#faults = faults
  }

  /** Whether what waits for the next merge is changes of endpoints and nothing else. */
  get onlyEndpoints(): boolean {
    return this.#onlyEndpoints
  }

  /** Sets what a source says of a service, or that it says nothing more. Returns whether it differs from before; a record that cannot be taken leaves things as they were. */
  set(source: string, key: string, record: ServiceRecord | undefined): boolean {
    const subject = { type: 'object', resource: `${source} ${key}` }
    const kept = this.#records.get(key)?.has(source) ?? false
    return this.#faults.attempt(`service|${source}|${key}`, subject, () => this.#set(source, key, record), false, kept)
  }

  /** Replaces the endpoints that a source has of a service. Endpoints of a service that the source did not name are ignored: they come with it. */
  setEndpoints(source: string, key: string, endpoints: readonly Endpoint[]): boolean {
    const before = this.#records.get(key)?.get(source)
    return before !== undefined && this.set(source, key, { service: before.service, endpoints })
  }

  /** Merges what sources said since the last call. A service that cannot be merged stays as it was. */
  merge(): Merge {
    const redefined = new Set<string>()
    const changed = new Map<string, readonly ServiceState[] | undefined>()
    if (this.#touched.size > 0) {
      for (const key of this.#touched) {
        const merge = () => this.#mergeService(changed, key, redefined)
        this.#faults.attempt(`merge|${key}`, { type: 'object', resource: key }, merge, undefined, true)
      }
      this.#touched.clear()
      this.#onlyEndpoints = true
      this.#services = this.#services.with(changed)
    }
    return { services: this.#services, definitions: this.#definitions, hosts: new Set(changed.keys()), redefined }
  }

  #set(source: string, key: string, record: ServiceRecord | undefined): boolean {
    const known = this.#records.get(key)
    const before = known?.get(source)
    const now = record && keepEqual(before, record)
    if (now === before) return false
    if (now) {
      if (known) known.set(source, now)
      else this.#records.set(key, new Map([[source, now]]))
    } else {
      known?.delete(source)
      if (known?.size === 0) this.#records.delete(key)
    }
    this.#onlyEndpoints &&= now !== undefined && now.service === before?.service
    this.#touched.add(key)
    return true
  }

  #mergeService(changed: Map<string, readonly ServiceState[] | undefined>, key: string, redefined: Set<string>): undefined {
    const namespace = key.slice(0, key.indexOf('/'))
    const hostname = key.slice(key.indexOf('/') + 1)
    const states = (changed.has(hostname) ? changed.get(hostname) : this.#services.get(hostname)) ?? []
    const others = states.filter((state) => state.service.namespace !== namespace)
    const before = states.find((state) => state.service.namespace === namespace)
    const records = this.#records.get(key)
    const now = records && stateOf(records, before)
    if (now === before) return
    if (now) changed.set(hostname, [...others, now].sort(byAge))
    else changed.set(hostname, others.length > 0 ? others : undefined)
    const isOther = now?.service !== before?.service || now?.hasLocalEndpoints !== before?.hasLocalEndpoints
    if (isOther) this.#definitions++
    if (!now || !before || isOther || reachesClusters(now, before)) redefined.add(hostname)
  }
}

/** The oldest first: nobody takes over a host by naming it once more. */
const byAge = ({ service: one }: ServiceState, { service: other }: ServiceState): number =>
  one.createdAt - other.createdAt || compare(one.namespace, other.namespace)

function keepEqual(before: ServiceRecord | undefined, now: ServiceRecord): ServiceRecord {
  if (!before) return now
  const service = JSON.stringify(before.service) === JSON.stringify(now.service) ? before.service : now.service
  const endpoints = JSON.stringify(before.endpoints) === JSON.stringify(now.endpoints) ? before.endpoints : now.endpoints
  return service === before.service && endpoints === before.endpoints ? before : { service, endpoints }
}

/** One service of what all sources say: the first definition in their order counts, with what entries add to it; endpoints add up. */
function stateOf(records: ReadonlyMap<string, ServiceRecord>, before: ServiceState | undefined): ServiceState {
  const ordered = [...records].sort(inOrder).map(([, record]) => record)
  const service = definitionOf(ordered, before?.service)
  const shards = shardsOf(
    ordered.map((record) => serving(record, service, before)),
    before?.shards ?? [],
  )
  if (before && before.service === service && sameItems(before.shards, shards)) return before
  const endpoints = shards.length === 1 ? (shards[0] as Shard).endpoints : shards.flatMap((shard) => shard.endpoints)
  return { service, endpoints, shards, hasLocalEndpoints: endpoints.some(({ address }) => leadsToCaller(address)) }
}

/** The first definition, with the ports and addresses that further entries of the host have. */
function definitionOf([first, ...others]: readonly ServiceRecord[], before: Service | undefined): Service {
  const { service } = first as ServiceRecord
  const adding = others.map((record) => record.service).filter((other) => addsTo(service, other))
  if (adding.length === 0) return service
  const ports = new Map(
    [service, ...adding]
      .flatMap((of) => of.ports)
      .toReversed()
      .map((port) => [port.number, port]),
  )
  const numbers = new Set([service, ...adding].flatMap((of) => of.ports.map(({ number }) => number)))
  const merged: Service = {
    ...service,
    addresses: [...new Set([service, ...adding].flatMap(({ addresses }) => addresses))],
    ports: [...numbers].map((number) => ports.get(number) as ServicePort),
  }
  return before && JSON.stringify(before) === JSON.stringify(merged) ? before : merged
}

/** Whether a definition adds to another: both are of entries, for the same callers, and find their endpoints alike. */
function addsTo(service: Service, other: Service): boolean {
  const alike = ({ provider, resolution, exportTo, selector }: Service) => JSON.stringify([provider, resolution, [...exportTo].sort(), selector])
  return other.provider === 'ServiceEntry' && alike(service) === alike(other)
}

/** A record whose endpoints serve the ports of the service that it was made for: those that its own definition has, as this one says. */
function serving(record: ServiceRecord, service: Service, before: ServiceState | undefined): ServiceRecord {
  const own = record.service.ports
  const isWhole = own === service.ports || JSON.stringify(own) === JSON.stringify(service.ports)
  if (isWhole || record.endpoints.length === 0) return record
  const serves = own.map(({ name }) => name)
  const known = new Map(before?.endpoints.map((endpoint) => [JSON.stringify(endpoint), endpoint]))
  const endpoints = record.endpoints.map((endpoint): Endpoint => {
    const narrowed = { ...endpoint, ports: Object.fromEntries(own.map((port) => [port.name, portOf(endpoint, port)])), serves }
    return known.get(JSON.stringify(narrowed)) ?? narrowed
  })
  return { service: record.service, endpoints }
}

/** The oldest comes first; of equally old ones that of a ServiceEntry, then by name of the source. */
function inOrder([source, { service }]: [string, ServiceRecord], [otherSource, { service: other }]: [string, ServiceRecord]): number {
  const isEntry = ({ provider }: Service): number => Number(provider === 'ServiceEntry')
  return service.createdAt - other.createdAt || isEntry(other) - isEntry(service) || compare(source, otherSource)
}

function shardsOf(records: readonly ServiceRecord[], before: readonly Shard[]): Shard[] {
  const byRegistry = new Map<string, ServiceRecord[]>()
  for (const record of records) append(byRegistry, registryName(record.service), record)
  const shards = [...byRegistry.values()].map((of): Shard => {
    const { service, endpoints: first } = of[0] as ServiceRecord
    const { provider, cluster } = service
    const endpoints = of.length === 1 ? first : of.flatMap((record) => record.endpoints)
    const known = before.find((shard) => shard.provider === provider && shard.cluster === cluster)
    return known && sameItems(known.endpoints, endpoints) ? known : { provider, cluster, endpoints }
  })
  return shards.sort((one, other) => compare(one.cluster, other.cluster) || compare(one.provider, other.provider))
}

/** Endpoints reach proxies on their own (EDS) unless clusters carry them (DNS), or who they run as. */
export function reachesClusters(now: ServiceState, before: ServiceState): boolean {
  if (now.service.resolution !== 'static') return true
  const accounts = ({ endpoints }: ServiceState) =>
    [...new Set(endpoints.map(({ namespace, serviceAccount }) => `${namespace}/${serviceAccount}`))].sort().join()
  return now.service.serviceAccounts.length === 0 && accounts(now) !== accounts(before)
}
