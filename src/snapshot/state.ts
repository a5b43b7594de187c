/** The one owner of what is known: takes events in any order, any number of times, and makes snapshots of the result. */
import { hash } from 'node:crypto'
import type { ConfigObject, Endpoint, Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../config/mesh-config.ts'
import { isStandIn } from '../config/stand-in.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import { endpointsOf, servicesOf } from '../registry/service-entries.ts'
import { type DestinationRuleIndex, indexDestinationRules } from './destination-rules.ts'
import { History } from './history.ts'
import { jwtRules, keySource } from './key-sources.ts'
import { networkGateways } from './networks.ts'
import {
  byAge,
  compare,
  type DestinationRule,
  type EnvoyFilter,
  type Gateway,
  type ServiceEntry,
  type Sidecar,
  type VirtualService,
  type WorkloadEntry,
} from './objects.ts'
import { type AuthorizationPolicy, byNamespace, type PeerAuthentication, type RequestAuthentication } from './policies.ts'
import type { Changes, MeshSnapshot, ServiceState, Settings } from './snapshot.ts'
import { indexVirtualServices, type VirtualServiceIndex } from './virtual-services.ts'
import { type Visibility, type VisibilityInputs, visibilityOf, type WorkedOut } from './visibility.ts'

/** What one source says of one service; several sources may speak of the same host and namespace. */
interface Contribution {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

/** Objects that are gone of which the last generation is remembered. */
const mostGone = 10_000

/** Collects events and makes snapshots. Equal content is no change, whatever else an event says. */
export class MeshState {
  readonly #settings: Settings
  readonly #faults: Faults
  readonly #configs = new Map<string, ConfigObject>()
  readonly #fingerprints = new Map<string, string>()
  /** `<namespace>/<hostname>` to contributions by source. */
  readonly #contributions = new Map<string, Map<string, Contribution>>()
  #services = new Map<string, readonly ServiceState[]>()
  #mesh: MeshConfig = defaultMeshConfig()
  #networks: MeshNetworks = {}
  #gateways: MeshSnapshot['networkGateways'] = new Map()
  #keySets: ReadonlyMap<string, string> = new Map()
  #kinds = new Set<string>()
  #keys = new Set<string>()
  #endpointHosts = new Set<string>()
  #touchedServices = new Set<string>()
  #workloadNamespaces = new Set<string>()
  #onlyEndpoints = true
  /** Who sees what, as it was worked out last. */
  #seen: WorkedOut | undefined
  /** Last generation of each object, of some that are gone too. */
  readonly #generations = new Map<string, number>()
  /** Objects whose generation changed since the last snapshot, and what it was then. */
  #changed = new Map<string, number | undefined>()
  readonly #history: History
  /** Ledger of the last snapshot. */
  #taken = ''
  /** Sum of the digests of all objects and their generations, two halves modulo 2^32. */
  readonly #ledger = new Uint32Array(2)
  #snapshot: MeshSnapshot

  constructor(settings: Settings, faults: Faults) {
    this.#settings = settings
    this.#faults = faults
    this.#history = new History(settings.features.PILOT_DISTRIBUTION_HISTORY_RETENTION)
    this.#taken = this.ledger
    this.#snapshot = this.#build(undefined)
  }

  /** All objects as they were accepted, sorted by key. */
  configs(): ConfigObject[] {
    return [...this.#configs.values()].sort((one, other) => compare(configKey(one), configKey(other)))
  }

  /** A digest of all objects and their generations, twelve characters. */
  get ledger(): string {
    return Buffer.from(this.#ledger.buffer).toString('base64')
  }

  /** Whether what waits for the next snapshot is changes of endpoints and nothing else. */
  get onlyEndpoints(): boolean {
    return this.#onlyEndpoints && this.#kinds.size === 0
  }

  /** Generation of an object in a version that was taken, by its ledger. Undefined when it had no such object, or is not known any more. */
  generation(key: string, ledger: string): number | undefined {
    const present = this.#changed.has(key) ? this.#changed.get(key) : this.#configs.get(key)?.generation
    return ledger === this.#taken ? present : this.#history.generation(key, ledger, present)
  }

  /** Adds, replaces or removes an object. Returns whether anything a proxy could see may have changed. One that cannot be taken leaves things as they were. */
  setConfig(key: string, object: ConfigObject | undefined): boolean {
    const subject = { type: 'object', resource: key, objects: [key] }
    return this.#faults.attempt(`object|${key}`, subject, () => this.#setConfig(key, object), false, this.#configs.has(key))
  }

  /**
   * A configuration object cannot be used at present: it stays as it is. Where it is nothing, or another stand-in, the given stand-in takes
   * its place. Returns whether that changes anything.
   */
  keepConfig(key: string, standIn: ConfigObject | undefined): boolean {
    const known = this.#configs.get(key)
    return standIn !== undefined && (!known || isStandIn(known)) && this.setConfig(key, standIn)
  }

  #setConfig(key: string, given: ConfigObject | undefined): boolean {
    const before = this.#configs.get(key)
    const fingerprint = given && JSON.stringify([given.spec, given.labels, given.annotations, given.createdAt])
    const entry = given?.kind === 'ServiceEntry' ? this.#contributionsOf(given as ServiceEntry) : undefined
    const fingerprintBefore = this.#fingerprints.get(key)
    const object = given && { ...given, generation: this.#nextGeneration(key, given, fingerprint !== fingerprintBefore) }
    if (object) this.#configs.set(key, object)
    else this.#configs.delete(key)
    if (before?.generation !== object?.generation && !this.#changed.has(key)) this.#changed.set(key, before?.generation)
    if (before) this.#count(key, before.generation, fingerprintBefore, -1)
    if (object) this.#count(key, object.generation, fingerprint, 1)
    if (fingerprint === fingerprintBefore) {
      if (before && object) this.#configs.set(key, { ...object, spec: before.spec, labels: before.labels, annotations: before.annotations })
      return false
    }
    if (fingerprint === undefined) this.#fingerprints.delete(key)
    else this.#fingerprints.set(key, fingerprint)
    const subject = object ?? before
    if (!subject) return false
    if (subject.kind === 'ServiceEntry') {
      this.#setEntry(key, entry ?? [])
      this.#faults.clear(`workloads|${key}`)
      return true
    }
    if (subject.kind === 'WorkloadEntry') {
      this.#workloadNamespaces.add(subject.namespace)
      return true
    }
    this.#kinds.add(subject.kind)
    this.#keys.add(key)
    return true
  }

  /** Sets what a registry says of a service, or removes it. Returns whether it differs from before. */
  setService(source: string, service: Service | undefined, endpoints: readonly Endpoint[], key: string): boolean {
    const subject = { type: 'object', resource: `${source} ${key}` }
    const kept = this.#contributions.get(key)?.has(source) ?? false
    return this.#faults.attempt(`service|${source}|${key}`, subject, () => this.#setService(source, service, endpoints, key), false, kept)
  }

  #setService(source: string, service: Service | undefined, endpoints: readonly Endpoint[], key: string): boolean {
    const sources = this.#contributions.get(key) ?? new Map<string, Contribution>()
    const before = sources.get(source)
    if (!service) {
      if (!sources.delete(source)) return false
      if (sources.size === 0) this.#contributions.delete(key)
      else this.#contributions.set(key, sources)
    } else {
      const kept = keepEqual(before, { service, endpoints })
      if (kept === before) return false
      sources.set(source, kept)
      this.#contributions.set(key, sources)
    }
    this.#onlyEndpoints &&= service !== undefined && sources.get(source)?.service === before?.service
    this.#touchedServices.add(key)
    return true
  }

  /** Replaces the endpoints of a registry's service. Unknown services are ignored: their endpoints come with them. */
  setEndpoints(source: string, key: string, endpoints: readonly Endpoint[]): boolean {
    const before = this.#contributions.get(key)?.get(source)
    return before ? this.setService(source, before.service, endpoints, key) : false
  }

  /** Replaces the mesh configuration. */
  setMesh(mesh: MeshConfig): boolean {
    if (JSON.stringify(mesh) === JSON.stringify(this.#mesh)) return false
    this.#mesh = mesh
    this.#kinds.add('Mesh')
    return true
  }

  /** Replaces the networks. */
  setNetworks(networks: MeshNetworks): boolean {
    if (JSON.stringify(networks) === JSON.stringify(this.#networks)) return false
    this.#networks = networks
    this.#kinds.add('Mesh')
    return true
  }

  /** Where the keys come from that RequestAuthentications need. */
  keySources(): ReadonlySet<string> {
    const sources = new Set<string>()
    for (const object of this.#configs.values()) {
      if (object.kind !== 'RequestAuthentication') continue
      // One that cannot be read is told where its listeners are made.
      const found = contain(
        () => jwtRules([object as RequestAuthentication]).map(keySource),
        () => [],
      )
      for (const source of found) if (source !== undefined) sources.add(source)
    }
    return sources
  }

  /** Sets the keys of an issuer, or says that they are not known any more. */
  setKeySet(source: string, content: string | undefined): boolean {
    if (this.#keySets.get(source) === content) return false
    const keySets = new Map(this.#keySets)
    if (content === undefined) keySets.delete(source)
    else keySets.set(source, content)
    this.#keySets = keySets
    this.#kinds.add('KeySets')
    return true
  }

  /** The last snapshot. */
  get current(): MeshSnapshot {
    return this.#snapshot
  }

  /** Makes a snapshot of what is known now, at a time in monotonic milliseconds, and says what changed since the last one. */
  take(now: number): { snapshot: MeshSnapshot; changes: Changes } {
    if (this.#changed.size > 0) {
      this.#history.replaced(this.#taken, this.#changed, now)
      this.#changed = new Map()
      this.#taken = this.ledger
    }
    for (const namespace of this.#workloadNamespaces) this.#reselect(namespace)
    this.#workloadNamespaces = new Set()
    if (this.#touchedServices.size > 0) this.#mergeServices()
    this.#findGateways()
    const changes: Changes = { kinds: this.#kinds, keys: this.#keys, endpointHosts: this.#endpointHosts }
    this.#kinds = new Set()
    this.#keys = new Set()
    this.#endpointHosts = new Set()
    this.#onlyEndpoints = true
    this.#snapshot = this.#build({ before: this.#snapshot, kinds: changes.kinds })
    return { snapshot: this.#snapshot, changes }
  }

  /** Gateways may be services: when those change, endpoints of all that is behind them do. */
  #findGateways(): void {
    const before = this.#gateways
    const found = contain(
      () => networkGateways(this.#networks, this.#services),
      (reason) => {
        const fault = { type: 'network', resource: 'gateways of all networks', objects: [], reason, consequence: consequences.kept }
        return { gateways: before, faults: [fault] }
      },
    )
    this.#faults.replace('networks', found.faults)
    if (JSON.stringify([...found.gateways]) === JSON.stringify([...this.#gateways])) return
    this.#gateways = found.gateways
    this.#kinds.add('Mesh')
  }

  /** The digest tells content apart as well as generations: these begin anew with the process. */
  #count(key: string, generation: number, fingerprint: string | undefined, sign: 1 | -1): void {
    const digest = hash('sha1', `${key}@${generation}@${fingerprint}`, 'buffer')
    for (const half of [0, 1]) this.#ledger[half] = (this.#ledger[half] as number) + sign * digest.readUInt32BE(4 * half)
  }

  /** Objects whose source counts no generations, as files do not, get one with each change, also when they were gone in between. */
  #nextGeneration(key: string, { generation }: ConfigObject, changed: boolean): number {
    const last = this.#generations.get(key) ?? 0
    const next = Math.max(generation, changed ? last + 1 : last)
    this.#generations.delete(key)
    this.#generations.set(key, next)
    for (const oldest of this.#generations.keys()) {
      if (this.#generations.size <= this.#configs.size + mostGone) break
      if (!this.#configs.has(oldest)) this.#generations.delete(oldest)
      else break
    }
    return next
  }

  /** What a ServiceEntry says of each of its hosts. */
  #contributionsOf(entry: ServiceEntry): Contribution[] {
    const endpoints = endpointsOf(entry, entry.spec.workloadSelector ? this.#workloads() : [], this.#settings.names)
    return servicesOf(entry).map((service) => ({ service, endpoints }))
  }

  #setEntry(key: string, contributions: readonly Contribution[]): void {
    const source = `config:${key}`
    const keyOf = ({ namespace, hostname }: Service) => `${namespace}/${hostname}`
    const wanted = new Set(contributions.map(({ service }) => keyOf(service)))
    for (const held of this.#heldBy.get(source) ?? []) if (!wanted.has(held)) this.setService(source, undefined, [], held)
    if (wanted.size > 0) this.#heldBy.set(source, wanted)
    else this.#heldBy.delete(source)
    for (const { service, endpoints } of contributions) this.setService(source, service, endpoints, keyOf(service))
  }
  readonly #heldBy = new Map<string, ReadonlySet<string>>()

  #workloads(): WorkloadEntry[] {
    return [...this.#configs.values()].filter((object): object is WorkloadEntry => object.kind === 'WorkloadEntry').sort(byAge)
  }

  #reselect(namespace: string): void {
    for (const [key, object] of this.#configs) {
      if (object.kind === 'ServiceEntry' && object.namespace === namespace && (object as ServiceEntry).spec.workloadSelector)
        this.#faults.attempt(
          `workloads|${key}`,
          { type: 'object', resource: key, objects: [key] },
          () => this.#setEntry(key, this.#contributionsOf(object as ServiceEntry)),
          undefined,
          true,
        )
    }
  }

  #mergeServices(): void {
    const services = new Map(this.#services)
    for (const key of this.#touchedServices)
      this.#faults.attempt(`merge|${key}`, { type: 'object', resource: key }, () => this.#mergeService(services, key), undefined, true)
    this.#touchedServices = new Set()
    this.#services = services
  }

  #mergeService(services: Map<string, readonly ServiceState[]>, key: string): void {
    const hostname = key.slice(key.indexOf('/') + 1)
    const namespace = key.slice(0, key.indexOf('/'))
    const others = (services.get(hostname) ?? []).filter((state) => state.service.namespace !== namespace)
    const before = services.get(hostname)?.find((state) => state.service.namespace === namespace)
    const merged = mergeContributions(this.#contributions.get(key), before)
    if (merged === before) return
    if (merged)
      services.set(
        hostname,
        [...others, merged].sort((one, other) => compare(one.service.namespace, other.service.namespace)),
      )
    else if (others.length > 0) services.set(hostname, others)
    else services.delete(hostname)
    this.#endpointHosts.add(hostname)
    if (merged && before && merged.service === before.service && !reachesClusters(merged, before)) return
    this.#kinds.add('Service')
    this.#keys.add(`ServiceEntry/${namespace}/${hostname}`)
  }

  /**
   * Indexes all objects of a kind. If that fails, those that fail by themselves are left out; if it still fails, the index stays as it was.
   */
  #indexed<T extends ConfigObject, Index>(kind: string, before: Index | undefined, make: (objects: T[]) => Index): Index {
    const objects = [...this.#configs.values()].filter((object): object is T => object.kind === kind).sort(byAge)
    const faults: ResourceFault[] = []
    const index = contain(
      () => make(objects),
      (whole) => {
        const good = objects.filter((object) => {
          const resource = configKey(object)
          const reason = contain<string | undefined>(
            () => {
              make([object])
              return undefined
            },
            (found) => found,
          )
          if (reason !== undefined) faults.push({ type: 'index', resource, objects: [resource], reason, consequence: consequences.leftOut })
          return reason === undefined
        })
        if (good.length === objects.length) faults.push({ type: 'index', resource: kind, objects: [], reason: whole, consequence: consequences.kept })
        return good.length === objects.length ? (before ?? make([])) : make(good)
      },
    )
    this.#faults.replace(`index|${kind}`, faults)
    return index
  }

  /** Who sees what; only services, rules and VirtualServices, and what the mesh says of them, can change it. */
  #findVisibility(inputs: VisibilityInputs, last: { before: MeshSnapshot; kinds: ReadonlySet<string> } | undefined): Visibility {
    const before = last?.before.visibility
    if (before && !['Service', 'DestinationRule', 'VirtualService', 'Mesh'].some((kind) => last?.kinds.has(kind))) return before
    if (!before) return (this.#seen = visibilityOf(inputs, undefined)).visibility
    return this.#faults.attempt(
      'visibility',
      { type: 'index', resource: 'who sees what' },
      () => {
        this.#seen = visibilityOf(inputs, this.#seen)
        this.#faults.replace('visible objects', this.#seen.faults)
        return this.#seen.visibility
      },
      before,
      true,
    )
  }

  #build(last: { before: MeshSnapshot; kinds: ReadonlySet<string> } | undefined): MeshSnapshot {
    const keep = <T>(kind: string, before: T | undefined, make: () => T): T =>
      last && before !== undefined && !last.kinds.has(kind) && !last.kinds.has('Mesh') ? before : make()
    const before = last?.before
    const domain = this.#settings.domain
    const list = <T extends ConfigObject>(kind: string, known: readonly T[] | undefined) =>
      keep(kind, known, () => this.#indexed<T, readonly T[]>(kind, known, (objects) => objects))
    const services = this.#services
    const destinationRules = keep('DestinationRule', before?.destinationRules, () =>
      this.#indexed<DestinationRule, DestinationRuleIndex>('DestinationRule', before?.destinationRules, (rules) =>
        indexDestinationRules(rules, domain, before?.destinationRules),
      ),
    )
    const virtualServices = keep('VirtualService', before?.virtualServices, () =>
      this.#indexed<VirtualService, VirtualServiceIndex>('VirtualService', before?.virtualServices, (objects) =>
        indexVirtualServices(
          objects,
          {
            domain,
            delegates: this.#settings.features.PILOT_ENABLE_VIRTUAL_SERVICE_DELEGATE,
            defaultExportTo: this.#mesh.defaultVirtualServiceExportTo,
          },
          before?.virtualServices,
        ),
      ),
    )
    const grouped = <T extends ConfigObject>(kind: string, known: ReadonlyMap<string, readonly T[]> | undefined) =>
      keep(kind, known, () => this.#indexed<T, ReadonlyMap<string, readonly T[]>>(kind, known, byNamespace))
    return {
      settings: this.#settings,
      mesh: this.#mesh,
      networks: this.#networks,
      networkGateways: this.#gateways,
      services,
      destinationRules,
      virtualServices,
      visibility: this.#findVisibility({ mesh: this.#mesh, services, destinationRules, virtualServices }, last),
      sidecars: grouped<Sidecar>('Sidecar', before?.sidecars),
      gateways: list<Gateway>('Gateway', before?.gateways),
      envoyFilters: list<EnvoyFilter>('EnvoyFilter', before?.envoyFilters),
      policies: {
        authorization: grouped<AuthorizationPolicy>('AuthorizationPolicy', before?.policies.authorization),
        requests: grouped<RequestAuthentication>('RequestAuthentication', before?.policies.requests),
        peers: grouped<PeerAuthentication>('PeerAuthentication', before?.policies.peers),
      },
      keySets: this.#keySets,
    }
  }
}

function keepEqual(before: Contribution | undefined, now: Contribution): Contribution {
  if (!before) return now
  const service = JSON.stringify(before.service) === JSON.stringify(now.service) ? before.service : now.service
  const endpoints = JSON.stringify(before.endpoints) === JSON.stringify(now.endpoints) ? before.endpoints : now.endpoints
  return service === before.service && endpoints === before.endpoints ? before : { service, endpoints }
}

/** One service of what all sources say: the oldest definition counts, endpoints add up. */
function mergeContributions(sources: ReadonlyMap<string, Contribution> | undefined, before: ServiceState | undefined): ServiceState | undefined {
  if (!sources || sources.size === 0) return undefined
  const sorted = [...sources.entries()].sort(([one, a], [other, b]) => a.service.createdAt - b.service.createdAt || compare(one, other))
  const service = (sorted[0] as [string, Contribution])[1].service
  const endpoints =
    sorted.length === 1 ? (sorted[0] as [string, Contribution])[1].endpoints : sorted.flatMap(([, contribution]) => contribution.endpoints)
  if (
    before &&
    before.service === service &&
    (before.endpoints === endpoints || (sorted.length > 1 && JSON.stringify(before.endpoints) === JSON.stringify(endpoints)))
  )
    return before
  return { service, endpoints }
}

/** Endpoints reach proxies on their own (EDS) unless clusters carry them (DNS), or who they run as. */
export function reachesClusters(now: ServiceState, before: ServiceState): boolean {
  if (now.service.resolution !== 'static') return true
  const accounts = ({ endpoints }: ServiceState) =>
    [...new Set(endpoints.map(({ namespace, serviceAccount }) => `${namespace}/${serviceAccount}`))].sort().join()
  return now.service.serviceAccounts.length === 0 && accounts(now) !== accounts(before)
}
