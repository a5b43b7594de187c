/**
 * Merges the services and endpoints of all sources (docs/resources.md, S9). A source is a registry of a cluster, or one object in it. Only
 * services with records that changed since the last merge are merged again; unchanged parts, down to single endpoints, keep their identity.
 */
import type { Endpoint, EndpointSlice, RegistryId, Service, ServicePort } from '../../protocols/data.ts'
import type { Faults } from '../model/faults.ts'
import { append, sameItems } from '../model/lists.ts'
import { compare } from '../model/order.ts'
import { OverlaidMap } from '../model/overlaid-map.ts'
import { portOf } from '../model/workload.ts'
import { NodeLocalities } from './node-localities.ts'
import { RepeatedEndpoints } from './repeated-endpoints.ts'
import { byKey, isOfWorkloadEntries, keptSlice, type Slice } from './slices.ts'

/** The definition of one service from one source, and all slices of its endpoints; undefined: those that the source has told stay. */
export interface ServiceRecord {
  readonly service: Service
  readonly slices: readonly EndpointSlice[] | undefined
}

/** A record as it is kept, with its slices in order. */
interface KeptRecord {
  readonly service: Service
  readonly slices: readonly Slice[]
}

/** The endpoints of a service in one registry of one cluster. */
export interface Shard extends RegistryId {
  readonly slices: readonly Slice[]
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
  /** The clusters in which some service has other addresses than elsewhere. It is the same set until it changes. */
  readonly vipClusters: ReadonlySet<string>
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
  readonly #covers: (service: Service) => boolean
  readonly #defined: (source: string, key: string, service: Service | undefined) => void
  readonly #own: string | undefined
  /** Records by service and source. */
  readonly #records = new Map<string, Map<string, KeptRecord>>()
  readonly #touched = new Set<string>()
  readonly #nodes = new NodeLocalities()
  /** The services that are gateways of networks, by source and key. */
  readonly #gateways = new Map<string, Service>()
  /** Slices restricted to the ports of their own definition, by slice. */
  readonly #narrowed = new WeakMap<Slice, { readonly ports: readonly ServicePort[]; readonly slice: Slice }>()
  readonly #repeated = new RepeatedEndpoints()
  #onlyEndpoints = true
  #services = OverlaidMap.empty<string, readonly ServiceState[]>()
  #definitions = 0
  /** By cluster the number of services with other addresses there. */
  readonly #vips = new Map<string, number>()
  #vipClusters: ReadonlySet<string> = new Set()
  #unready = 0

  /**
   * `covers`: whether services of a registry's namespace count (docs/resources.md, O3); those of entries have been decided on before.
   * `defined` is told of every definition that came, changed or went, with its source. `own`: the cluster of this process, whose definitions come
   * before those of others; undefined: no cluster is another one.
   */
  constructor(
    faults: Faults,
    covers: (service: Service) => boolean = () => true,
    defined: (source: string, key: string, service: Service | undefined) => void = () => {},
    own?: string,
  ) {
    this.#own = own
    this.#faults = faults
    this.#covers = covers
    this.#defined = defined
  }

  /** Whether all changes since the last merge are of endpoints. */
  get onlyEndpoints(): boolean {
    return this.#onlyEndpoints
  }

  /** The services of all clusters that are gateways of networks (docs/resources.md, O12), in the order of their sources and keys. */
  get networkGateways(): readonly Service[] {
    if (this.#gateways.size === 0) return []
    const all = [...this.#gateways].sort(([one], [other]) => compare(one, other)).map(([, service]) => service)
    return all.filter((service) => this.#covers(service))
  }

  /** The number of endpoints that are not ready, as of the last merge. */
  get unready(): number {
    return this.#unready
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
   * Sets or removes one slice of the endpoints of a service from a source. Ignored for a service without a record from that source: its
   * record will contain the slice.
   */
  setSlice(source: string, key: string, part: string, slice: EndpointSlice | undefined): boolean {
    const before = this.#records.get(key)?.get(source)
    if (!before) return false
    const others = before.slices.filter((known) => known.key !== part)
    return this.set(source, key, { service: before.service, slices: slice ? [...others, { ...slice, key: part }] : others })
  }

  /** Sets the locality of a node, or removes the node: services with endpoints that have their locality from it are merged again. */
  setNode(cluster: string, name: string, locality: string | undefined): void {
    for (const key of this.#nodes.setNode(cluster, name, locality)) this.#touched.add(key)
  }

  /** Merges the services of some namespaces again, for which it may have changed whether they count. */
  reconsider(namespaces: ReadonlySet<string> | 'all'): void {
    for (const key of this.#records.keys())
      if (namespaces === 'all' || namespaces.has(key.slice(0, key.indexOf('/')))) {
        this.#touched.add(key)
        this.#onlyEndpoints = false
      }
  }

  /** The records of a service by source: a registry, or the key of an object. */
  recordsAt(key: string): Iterable<readonly [source: string, record: KeptRecord]> {
    return this.#records.get(key) ?? []
  }

  /** All records: one for each source of each service. */
  *records(): Generator<readonly [source: string, key: string, record: KeptRecord]> {
    for (const [key, sources] of this.#records) for (const [source, record] of sources) yield [source, key, record]
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
      if (!sameSet(this.#vipClusters, this.#vips)) this.#vipClusters = new Set(this.#vips.keys())
    }
    return { services: this.#services, definitions: this.#definitions, vipClusters: this.#vipClusters, hosts: new Set(changed.keys()), redefined }
  }

  #set(source: string, key: string, record: ServiceRecord | undefined): boolean {
    const known = this.#records.get(key)
    const before = known?.get(source)
    const now = record && kept(before, record)
    if (now === before) return false
    if (now) {
      if (known) known.set(source, now)
      else this.#records.set(key, new Map([[source, now]]))
    } else {
      known?.delete(source)
      if (known?.size === 0) this.#records.delete(key)
    }
    this.#nodes.changed(key, before?.slices ?? [], now?.slices ?? [])
    this.#onlyEndpoints &&= now !== undefined && now.service === before?.service
    this.#touched.add(key)
    if (now?.service !== before?.service) {
      if (now?.service.outside?.gateway) this.#gateways.set(`${source} ${key}`, now.service)
      else this.#gateways.delete(`${source} ${key}`)
      this.#defined(source, key, now?.service)
    }
    return true
  }

  #mergeService(changed: Map<string, readonly ServiceState[] | undefined>, key: string, redefined: Set<string>): undefined {
    const namespace = key.slice(0, key.indexOf('/'))
    const hostname = key.slice(key.indexOf('/') + 1)
    const states = (changed.has(hostname) ? changed.get(hostname) : this.#services.get(hostname)) ?? []
    const others = states.filter((state) => state.service.namespace !== namespace)
    const before = states.find((state) => state.service.namespace === namespace)
    const records = this.#counting(key)
    const now = records && this.#stateOf(records, before)
    if (now === before) return
    this.#unready += unreadyIn(now) - unreadyIn(before)
    if (now?.service !== before?.service) this.#countVips(before, now)
    if (now) changed.set(hostname, others.length > 0 ? [...others, now].sort((one, other) => this.#byAge(one.service, other.service)) : [now])
    else changed.set(hostname, others.length > 0 ? others : undefined)
    const isOther = now?.service !== before?.service || now?.hasLocalEndpoints !== before?.hasLocalEndpoints
    if (isOther) this.#definitions++
    if (!now || !before || isOther || reachesClusters(now, before)) redefined.add(hostname)
  }

  /**
   * Orders definitions of several clusters (docs/resources.md, S9): those of the own one, then by the id of the cluster, which its server does not
   * choose. Nothing that a server says of its objects, such as their age, comes before that.
   */
  #byCluster(one: Service, other: Service): number {
    if (this.#own === undefined) return 0
    const rank = ({ provider, cluster }: Service) => (provider === 'ServiceEntry' || cluster === this.#own ? '' : cluster)
    return compare(rank(one), rank(other))
  }

  /** Orders definitions of a host in several namespaces: the oldest first, so that a newer one does not replace an older one. */
  #byAge(one: Service, other: Service): number {
    return this.#byCluster(one, other) || one.createdAt - other.createdAt || compare(one.namespace, other.namespace)
  }

  /** Orders records of a service: the oldest first; of the same age, those of ServiceEntries first, then by name of the source. */
  #inOrder([source, { service }]: [string, KeptRecord], [otherSource, { service: other }]: [string, KeptRecord]): number {
    const isEntry = ({ provider }: Service): number => Number(provider === 'ServiceEntry')
    return this.#byCluster(service, other) || service.createdAt - other.createdAt || isEntry(other) - isEntry(service) || compare(source, otherSource)
  }

  #countVips(before: ServiceState | undefined, now: ServiceState | undefined): void {
    const count = (cluster: string, by: number) => {
      const sum = (this.#vips.get(cluster) ?? 0) + by
      if (sum > 0) this.#vips.set(cluster, sum)
      else this.#vips.delete(cluster)
    }
    for (const cluster of Object.keys(before?.service.clusterVIPs ?? {})) count(cluster, -1)
    for (const cluster of Object.keys(now?.service.clusterVIPs ?? {})) count(cluster, 1)
  }

  /** The records of a service whose namespace counts; undefined without any. */
  #counting(key: string): ReadonlyMap<string, KeptRecord> | undefined {
    const records = this.#records.get(key)
    if (!records) return undefined
    const counts = ({ service }: KeptRecord) => service.provider === 'ServiceEntry' || this.#covers(service)
    if ([...records.values()].every(counts)) return records
    const counting = [...records].filter(([, record]) => counts(record))
    return counting.length > 0 ? new Map(counting) : undefined
  }

  /** Merges the records of one service: the first definition in their order, with the additions of further entries, and all endpoints. */
  #stateOf(records: ReadonlyMap<string, KeptRecord>, before: ServiceState | undefined): ServiceState {
    const ordered = [...records].sort((one, other) => this.#inOrder(one, other)).map(([, record]) => record)
    const service = definitionOf(ordered, before?.service)
    const shards = shardsOf(
      selectingOnce(ordered).map((record) => this.#serving(this.#located(record), service)),
      before?.shards ?? [],
      this.#repeated,
    )
    if (before && before.service === service && sameItems(before.shards, shards)) return before
    return serviceState(service, shards)
  }

  /** A record whose endpoints have the localities of their nodes. */
  #located({ service, slices }: KeptRecord): KeptRecord {
    return { service, slices: slices.map((slice) => this.#nodes.located(slice, service)) }
  }

  /**
   * Restricts the endpoints of a record to the ports in its own definition, with the target ports of that definition, if the merged service
   * has others.
   */
  #serving(record: KeptRecord, service: Service): KeptRecord {
    const { ports } = record.service
    const isWhole = ports === service.ports || JSON.stringify(ports) === JSON.stringify(service.ports)
    return isWhole ? record : { service: record.service, slices: record.slices.map((slice) => this.#narrowedTo(ports, slice)) }
  }

  #narrowedTo(ports: readonly ServicePort[], slice: Slice): Slice {
    const known = this.#narrowed.get(slice)
    if (known?.ports === ports) return known.slice
    const serves = ports.map(({ name }) => name)
    const endpoints = slice.endpoints.map((endpoint): Endpoint => {
      return { ...endpoint, ports: Object.fromEntries(ports.map((port) => [port.name, portOf(endpoint, port)])), serves }
    })
    const narrowed = keptSlice(known?.slice, { key: slice.key, version: '', endpoints })
    this.#narrowed.set(slice, { ports, slice: narrowed })
    return narrowed
  }
}

/** A service with the endpoints of its shards. */
export function serviceState(service: Service, shards: readonly Shard[]): ServiceState {
  const endpoints = joined(shards.map((shard) => shard.endpoints))
  return { service, endpoints, shards, hasLocalEndpoints: shards.some(({ slices }) => slices.some(({ hasLocal }) => hasLocal)) }
}

/** Joins lists; copying whole arrays costs a tenth of `flatMap`. */
const joined = ([first = [], ...others]: (readonly Endpoint[])[]): readonly Endpoint[] => (others.length === 0 ? first : first.concat(...others))

/** The endpoints of a registry. */
export function shardOf({ provider, cluster }: RegistryId, slices: readonly Slice[]): Shard {
  const endpoints = joined(slices.map((slice) => slice.endpoints))
  return { provider, cluster, slices, endpoints }
}

const unreadyIn = (state: ServiceState | undefined): number =>
  state?.shards.reduce((sum, { slices }) => slices.reduce((of, { unready }) => of + unready, sum), 0) ?? 0

/** A record as it is to be kept, with the parts of the record before that are equal. */
function kept(before: KeptRecord | undefined, now: ServiceRecord): KeptRecord {
  if (!before) return { service: now.service, slices: keptSlices([], now.slices ?? []) }
  const service = before.service === now.service || JSON.stringify(before.service) === JSON.stringify(now.service) ? before.service : now.service
  const slices = keptSlices(before.slices, now.slices ?? before.slices)
  return service === before.service && slices === before.slices ? before : { service, slices }
}

function keptSlices(before: readonly Slice[], now: readonly EndpointSlice[]): readonly Slice[] {
  if (now === before) return before
  const known = new Map(before.map((slice) => [slice.key, slice]))
  const given = new Map(now.map((slice) => [slice.key, slice]))
  const slices = [...given.values()]
    .map((slice) => (known.get(slice.key) === slice ? (slice as Slice) : keptSlice(known.get(slice.key), slice)))
    .sort(byKey)
  return sameItems(before, slices) ? before : slices
}

/** Leaves out what Services of other clusters than that of the first one select of the WorkloadEntries: each is an endpoint once (docs/resources.md, O10). */
function selectingOnce(records: readonly KeptRecord[]): readonly KeptRecord[] {
  const first = records.find(({ service }) => service.provider === 'Orchestrator')
  return records.filter(({ service, slices }) => service.cluster === first?.service.cluster || !slices.some(isOfWorkloadEntries))
}

/** The first definition, with the addresses that it has in other clusters, and the additional ports and addresses of other entries for the host. */
function definitionOf(records: readonly KeptRecord[], before: Service | undefined): Service {
  const service = withVips(records, before)
  const others = records.slice(1)
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

/** The first definition, with its addresses in the clusters in which it has others. */
function withVips(records: readonly KeptRecord[], before: Service | undefined): Service {
  const { service } = records[0] as KeptRecord
  if (service.provider !== 'Orchestrator' || records.length === 1) return service
  const vips = records.flatMap(({ service: { provider, cluster, addresses } }): [string, readonly string[]][] =>
    provider === 'Orchestrator' && cluster !== service.cluster && !sameItems(addresses, service.addresses) ? [[cluster, addresses]] : [],
  )
  if (vips.length === 0) return service
  const merged: Service = { ...service, clusterVIPs: Object.fromEntries(vips.sort(([one], [other]) => compare(one, other))) }
  return before && JSON.stringify(before) === JSON.stringify(merged) ? before : merged
}

const sameSet = (one: ReadonlySet<string>, other: ReadonlyMap<string, unknown>): boolean =>
  one.size === other.size && [...one].every((each) => other.has(each))

/** Whether a definition adds to another one: both are from ServiceEntries, with the same exportTo, resolution and selector. */
function addsTo(service: Service, other: Service): boolean {
  const alike = ({ provider, resolution, exportTo, selector }: Service) => JSON.stringify([provider, resolution, [...exportTo].sort(), selector])
  return other.provider === 'ServiceEntry' && alike(service) === alike(other)
}

function shardsOf(records: readonly KeptRecord[], before: readonly Shard[], repeated: RepeatedEndpoints): Shard[] {
  const byRegistry = new Map<string, KeptRecord[]>()
  for (const record of records) append(byRegistry, registryName(record.service), record)
  const shards = [...byRegistry.values()].map((of): Shard => {
    const { service, slices: first } = of[0] as KeptRecord
    const all = of.length === 1 ? first : of.flatMap((record) => record.slices)
    const slices = service.provider === 'Orchestrator' ? repeated.without(all, service.ports) : all
    const known = before.find((shard) => shard.provider === service.provider && shard.cluster === service.cluster)
    return known && sameItems(known.slices, slices) ? known : shardOf(service, slices)
  })
  return shards.sort((one, other) => compare(one.cluster, other.cluster) || compare(one.provider, other.provider))
}

/**
 * Whether a change of endpoints changes clusters: always unless the resolution is static, otherwise only when the endpoints' service
 * accounts change and the service lists none itself. Other changes of endpoints are sent by EDS only.
 */
export function reachesClusters(now: ServiceState, before: ServiceState): boolean {
  if (now.service.resolution !== 'static') return true
  if (now.service.serviceAccounts.length > 0 && now.service.provider !== 'Orchestrator') return false
  const [one, other] = [accountsIn(now), accountsIn(before)]
  return one.size !== other.size || ![...one].every((account) => other.has(account))
}

/** The service accounts of the endpoints of a service, as `<namespace>/<account>`. */
function accountsIn({ shards }: ServiceState): Set<string> {
  const found = new Set<string>()
  for (const { slices } of shards) for (const { accounts } of slices) for (const account of accounts) found.add(account)
  return found
}
