/**
 * Merges the services and endpoints of all sources (docs/resources.md, S9). A source is a registry of a cluster, or one object in it. Only
 * services with records that changed since the last merge are merged again; unchanged parts keep their identity.
 */
import type { Endpoint, RegistryId, Service, ServicePort } from '../../protocols/data.ts'
import { leadsToCaller } from '../config/addresses.ts'
import type { Faults } from '../model/faults.ts'
import { append, sameItems } from '../model/lists.ts'
import { compare } from '../model/order.ts'
import { PatchedMap } from '../model/patched-map.ts'
import { portOf } from '../model/workload.ts'

/** The definition and endpoints of one service from one source. */
export interface ServiceRecord {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

/** The endpoints of a service in one registry of one cluster. */
export interface Shard extends RegistryId {
  readonly endpoints: readonly Endpoint[]
}

/** A service with its endpoints from all sources. Unchanged parts keep their identity. */
export interface ServiceState {
  readonly service: Service
  /** The endpoints of all shards, in the order of the shards. */
  readonly endpoints: readonly Endpoint[]
  /** Sorted by cluster, then provider. */
  readonly shards: readonly Shard[]
  /** Whether some endpoint has an address on the caller's own machine. Not all callers get such endpoints (docs/resources.md, E7). */
  readonly hasLocalEndpoints: boolean
}

/** Services by host name; several when namespaces define the same host, the oldest first, then by namespace. */
export type ServicesByHost = ReadonlyMap<string, readonly ServiceState[]>

/** The result of a merge. */
export interface Merge {
  readonly services: ServicesByHost
  /**
   * A number that changes when the definition of any service changes, or whether it has endpoints on the caller's machine. Other changes of
   * endpoints do not change it.
   */
  readonly definitions: number
  /** Hosts with any change. */
  readonly hosts: ReadonlySet<string>
  /** Hosts with changes that affect more than load assignments. */
  readonly redefined: ReadonlySet<string>
}

/** A registry's name in keys and on pages: `<provider>/<cluster>`, or the provider alone without a cluster. */
export const registryName = ({ provider, cluster }: RegistryId): string => (cluster === '' ? provider : `${provider}/${cluster}`)

/** Collects service records of all sources and merges them. Keys of services are `<namespace>/<hostname>`. */
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

  /** Whether all changes since the last merge are of endpoints. */
  get onlyEndpoints(): boolean {
    return this.#onlyEndpoints
  }

  /**
   * Sets or removes the record of a service from a source. Returns whether it differs from before. A record that cannot be processed leaves
   * the state as it was.
   */
  set(source: string, key: string, record: ServiceRecord | undefined): boolean {
    const subject = { type: 'object', resource: `${source} ${key}` }
    const kept = this.#records.get(key)?.has(source) ?? false
    return this.#faults.attempt(`service|${source}|${key}`, subject, () => this.#set(source, key, record), false, kept)
  }

  /**
   * Replaces the endpoints of a service from a source. Ignored for a service without a record from that source: its record will contain the
   * endpoints.
   */
  setEndpoints(source: string, key: string, endpoints: readonly Endpoint[]): boolean {
    const before = this.#records.get(key)?.get(source)
    return before !== undefined && this.set(source, key, { service: before.service, endpoints })
  }

  /** Merges the records that changed since the last call. A service that cannot be merged stays as it was. */
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

/** Orders the oldest first, so that a newer definition of the same host does not replace an older one. */
const byAge = ({ service: one }: ServiceState, { service: other }: ServiceState): number =>
  one.createdAt - other.createdAt || compare(one.namespace, other.namespace)

function keepEqual(before: ServiceRecord | undefined, now: ServiceRecord): ServiceRecord {
  if (!before) return now
  const service = JSON.stringify(before.service) === JSON.stringify(now.service) ? before.service : now.service
  const endpoints = JSON.stringify(before.endpoints) === JSON.stringify(now.endpoints) ? before.endpoints : now.endpoints
  return service === before.service && endpoints === before.endpoints ? before : { service, endpoints }
}

/** Merges the records of one service: the first definition in their order, with the additions of further entries, and all endpoints. */
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

/** The first definition, with the additional ports and addresses of other entries for the host. */
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

/** Whether a definition adds to another one: both are from ServiceEntries, with the same exportTo, resolution and selector. */
function addsTo(service: Service, other: Service): boolean {
  const alike = ({ provider, resolution, exportTo, selector }: Service) => JSON.stringify([provider, resolution, [...exportTo].sort(), selector])
  return other.provider === 'ServiceEntry' && alike(service) === alike(other)
}

/**
 * Restricts the endpoints of a record to the ports in its own definition, with the target ports of that definition, if the merged service
 * has others.
 */
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

/** Orders records: the oldest first; of the same age, those of ServiceEntries first, then by name of the source. */
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

/**
 * Whether a change of endpoints changes clusters: always unless the resolution is static, otherwise only when the endpoints' service
 * accounts change and the service lists none itself. Other changes of endpoints are sent by EDS only.
 */
export function reachesClusters(now: ServiceState, before: ServiceState): boolean {
  if (now.service.resolution !== 'static') return true
  const accounts = ({ endpoints }: ServiceState) =>
    [...new Set(endpoints.map(({ namespace, serviceAccount }) => `${namespace}/${serviceAccount}`))].sort().join()
  return now.service.serviceAccounts.length === 0 && accounts(now) !== accounts(before)
}
