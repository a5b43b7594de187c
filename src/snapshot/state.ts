/** Owns the state of the mesh: accepts events in any order, any number of times, and makes snapshots of the result. */
import type { ClusterNode, ConfigObject, Namespace, ObjectReference, Pod } from '../../protocols/data.ts'
import { clusterKinds, kindOfKey, kinds } from '../config/kinds.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../config/mesh-config.ts'
import { isPolicyKind } from '../config/recognise.ts'
import { consequences, contain, type Faults } from '../model/faults.ts'
import { EntryRegistry } from '../registry/entry-registry.ts'
import { type Merge, MergedServices } from '../registry/merged-services.ts'
import { nodeLocality } from '../registry/node-localities.ts'
import { type ServiceEntry, type WorkloadEntry, workloadOf, workloadOfEntry } from '../registry/service-entries.ts'
import { AllocatedAddresses } from './allocated-addresses.ts'
import { Arbiter, type LeftOut } from './arbiter.ts'
import { type ClusterChange, ClusterObjects } from './cluster-objects.ts'
import { Discovery } from './discovery.ts'
import { GivenSettings } from './given-settings.ts'
import { Indexes } from './indexes.ts'
import { type NeededKeys, neededKeys } from './key-sources.ts'
import { networkGateways, sameGateways } from './networks.ts'
import { type ObjectChange, ObjectStore } from './object-store.ts'
import type { RequestAuthentication } from './policies.ts'
import { referenceTo } from './references.ts'
import type { Changes, MeshSnapshot, NetworkGateways, Settings } from './snapshot.ts'
import { type SystemNetworks, withSystemNamespace, withSystemNetworks } from './system-networks.ts'
import { type ComputedVisibility, sameInputs, type Visibility, type VisibilityInputs, visibilityOf } from './visibility.ts'

/** Collects events and makes snapshots. An event with equal content is not a change. */
export class MeshState {
  readonly objects: ObjectStore
  readonly services: MergedServices
  readonly #settings: Settings
  readonly #faults: Faults
  readonly #entries: EntryRegistry
  readonly #arbiter: Arbiter
  readonly #indexes: Indexes
  /** The mesh configurations and the networks of all sources. */
  readonly meshes = new GivenSettings<MeshConfig>(defaultMeshConfig())
  readonly networks = new GivenSettings<MeshNetworks>({})
  #gateways: NetworkGateways = new Map()
  /** The pods, namespaces and nodes of clusters. */
  readonly #clusters: ClusterObjects
  readonly #discovery: Discovery
  #systemNetworks: SystemNetworks = new Map()
  #nodeHosts: ReadonlySet<string> = new Set()
  #effectiveNetworks: { readonly given: MeshNetworks; readonly system: SystemNetworks; readonly networks: MeshNetworks } | undefined
  #keySets: ReadonlyMap<string, string> = new Map()
  #keySources: { readonly of: readonly RequestAuthentication[]; readonly sources: ReadonlyMap<string, NeededKeys> } = { of: [], sources: new Map() }
  /** Objects changed since the last snapshot, by key. */
  #changed = new Map<string, ObjectChange>()
  /** Whether anything other than objects and services changed. */
  #settingsChanged = false
  /** The number of service definitions that the addresses were last allocated for ({@link Merge.definitions}). */
  #allocatedFor = -1
  /** The visibility last computed, with its inputs. */
  #visibility: ComputedVisibility | undefined
  #snapshot: MeshSnapshot

  constructor(settings: Settings, faults: Faults) {
    this.#settings = settings
    this.#faults = faults
    this.objects = new ObjectStore(settings.features.PILOT_DISTRIBUTION_HISTORY_RETENTION)
    this.#arbiter = new Arbiter(!settings.optOuts.has('file-readability'))
    this.#discovery = new Discovery(settings.names, this.meshes.inForce.value)
    this.services = new MergedServices(
      faults,
      ({ namespace, cluster }) => this.#discovery.covers(namespace, cluster),
      (source, key, service) => {
        if (settings.features.PILOT_ENABLE_ORCH_SELECT_WORKLOAD_ENTRIES) this.#entries.setService(source, key, service)
      },
      settings.features.CLUSTER_ID,
    )
    this.#entries = new EntryRegistry(this.services, settings.names, faults)
    this.#clusters = new ClusterObjects({
      namespaceChanged: (change) => this.#namespaceChanged(change),
      nodeChanged: ({ before, now }) => this.#nodeChanged(before, now),
      podChanged: (key, { before, now }) => this.#podChanged(key, before, now),
    })
    this.#indexes = new Indexes(settings, this.meshes.inForce.value, this.objects, faults)
    this.#snapshot = this.#build(this.services.merge(), undefined)
  }

  /** Whether all changes since the last snapshot are of endpoints, and of the pods that they are. */
  get onlyEndpoints(): boolean {
    return this.services.onlyEndpoints && this.#changed.size === 0 && !this.#settingsChanged
  }

  /**
   * Adds, replaces or removes the definition of an object by a source. Returns whether anything that affects a proxy may have changed. An
   * object that cannot be processed leaves the state as it was.
   */
  setConfig(key: string, object: ConfigObject | undefined, source = ''): boolean {
    this.#arbiter.define(source, key, object)
    return this.#decide(key)
  }

  /**
   * Handles a definition that is currently invalid: its last valid version stays. If there is none, or only a stand-in, the given stand-in is
   * set. Returns whether that changes anything.
   */
  keepConfig(key: string, standIn: ConfigObject | undefined, source = ''): boolean {
    this.#arbiter.defineUnusable(source, key, standIn)
    return this.#decide(key)
  }

  /**
   * Sets the order of the sources, by which it is decided which of several definitions of an object counts. Returns the keys of the objects
   * that differ by it.
   */
  setSources(order: readonly string[]): string[] {
    return this.#decideAll(this.#arbiter.setSources(order))
  }

  /** Removes all definitions of a source that is no more. Returns the keys of the objects that differ by it. */
  withdrawSource(source: string): string[] {
    return this.#decideAll(this.#arbiter.withdraw(source))
  }

  /** The object with a key, whether it is configuration or describes a cluster. */
  object(key: string): ConfigObject | undefined {
    return this.objects.get(key) ?? this.#clusters.get(key)
  }

  /** The keys of all objects that describe clusters. */
  keysInClusters(): Iterable<string> {
    return this.#clusters.keys()
  }

  /** The objects of all clusters with a kind, namespace and name. */
  inClusters(kind: string, namespace: string, name: string): ConfigObject[] {
    return this.#clusters.named(kind, namespace, name)
  }

  /** The definitions of an object that could be used and do not count, with the reason. */
  leftOut(key: string): LeftOut[] {
    return this.#arbiter.leftOut(key)
  }

  /** The objects that would count if their namespaces were discovered. */
  undiscovered(): ConfigObject[] {
    if ((this.meshes.inForce.value.discoverySelectors ?? []).length === 0) return []
    return this.#arbiter.keysIn('all').flatMap((key) => {
      const { object } = this.#arbiter.verdict(key)
      return object && !this.#isDiscovered(object) ? object : []
    })
  }

  /** Whether the namespace of an object is discovered. Policies count in every namespace, so that no label of a namespace opens a workload. */
  #isDiscovered({ kind, namespace, cluster }: ConfigObject): boolean {
    return isPolicyKind(kind) || this.#discovery.covers(namespace, cluster)
  }

  /** Returns the reference to the object with a key, with its place if some source defines it. */
  reference(key: string): ObjectReference {
    return referenceTo(key, this.object(key) ?? this.#arbiter.verdict(key).object, this.#settings.names.domain)
  }

  #decideAll(keys: readonly string[]): string[] {
    return keys.filter((key) => this.#decide(key))
  }

  /** Puts into force what counts for an object. */
  #decide(key: string): boolean {
    const { object, faults } = this.#arbiter.verdict(key)
    this.#faults.replace(`definitions|${key}`, faults)
    const subject = { type: 'object', resource: key, objects: [key] }
    return this.#faults.attempt(`object|${key}`, subject, () => this.#setConfig(key, object), false, this.objects.get(key) !== undefined)
  }

  #setConfig(key: string, defined: ConfigObject | undefined): boolean {
    const kind = kindOfKey(key)
    if (clusterKinds.has(kind)) return this.#clusters.set(key, defined)
    const given = defined && this.#isDiscovered(defined) ? defined : undefined
    const records = given && kind === 'ServiceEntry' ? this.#entries.recordsOf(given as ServiceEntry) : []
    const change = this.objects.set(key, given)
    if (!change) return false
    const { before, now } = change
    if (kind === 'ServiceEntry') this.#entries.setEntry(key, before as ServiceEntry | undefined, now as ServiceEntry | undefined, records)
    else if (kind === 'WorkloadEntry') this.#workloadChanged(key, before as WorkloadEntry | undefined, now as WorkloadEntry | undefined)
    else if (kinds.get(kind)?.without !== undefined) return false
    else this.#objectChanged(key, before, now)
    return true
  }

  /** An object that came and went since the last snapshot is no change. */
  #objectChanged(key: string, replaced: ConfigObject | undefined, now: ConfigObject | undefined): void {
    const known = this.#changed.get(key)
    const before = known ? known.before : replaced
    if (before ?? now) this.#changed.set(key, { before, now })
    else this.#changed.delete(key)
  }

  /** Replaces the mesh configuration that counts while no source gives one. Returns whether the one in force differs from before. */
  setMesh(mesh: MeshConfig): boolean {
    return this.settingsMayDiffer(this.meshes.setDefault(mesh))
  }

  /** Replaces the networks that count while no source gives any. Returns whether those in force differ from before. */
  setNetworks(networks: MeshNetworks): boolean {
    return this.settingsMayDiffer(this.networks.setDefault(networks))
  }

  /** Notes whether a change of {@link meshes} or {@link networks} brought another value into force. Returns that. */
  settingsMayDiffer(differs: boolean): boolean {
    if (differs) this.#rediscover(this.#discovery.setSettings(this.meshes.inForce.value))
    this.#settingsChanged ||= differs
    return differs
  }

  #namespaceChanged(change: ClusterChange<Namespace>): void {
    const { features, names } = this.#settings
    this.#rediscover(this.#discovery.setNamespace(change.before, change.now))
    if ((change.now ?? change.before)?.name !== features.POD_NAMESPACE) return
    const networks = withSystemNamespace(this.#systemNetworks, change, names.domain)
    if (networks === this.#systemNetworks) return
    this.#systemNetworks = networks
    this.#settingsChanged = true
  }

  /** The networks in force, with those of the system namespaces of clusters. It is the same object until one of both changes. */
  get #networksInForce(): MeshNetworks {
    const [given, system] = [this.networks.inForce.value, this.#systemNetworks]
    const known = this.#effectiveNetworks
    if (known?.given === given && known.system === system) return known.networks
    const networks = withSystemNetworks(given, system, this.#settings.features.CLUSTER_ID)
    this.#effectiveNetworks = { given, system, networks }
    return networks
  }

  #nodeChanged(before: ClusterNode | undefined, now: ClusterNode | undefined): void {
    const { domain } = this.#settings.names
    if (before && (before.cluster !== now?.cluster || before.name !== now.name)) this.services.setNode(before.cluster, before.name, undefined)
    if (now) this.services.setNode(now.cluster, now.name, nodeLocality(now.labels, domain))
  }

  #workloadChanged(key: string, before: WorkloadEntry | undefined, now: WorkloadEntry | undefined): void {
    const { features, names } = this.#settings
    this.#entries.setWorkload(key, before, now && workloadOfEntry(now, names, features.PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS))
  }

  #podChanged(key: string, before: Pod | undefined, now: Pod | undefined): void {
    if (this.#settings.features.PILOT_ENABLE_SERVICEENTRY_SELECT_PODS)
      this.#entries.setWorkload(key, before && workloadOf(before), now && workloadOf(now))
  }

  /** Decides again on the objects and services of namespaces for which it has changed whether they are discovered. */
  #rediscover(namespaces: ReadonlySet<string> | 'all'): void {
    if (namespaces !== 'all' && namespaces.size === 0) return
    this.#decideAll(this.#arbiter.keysIn(namespaces))
    this.services.reconsider(namespaces)
  }

  /** The sources of the keys that RequestAuthentications need. It is the same map until a RequestAuthentication changes. */
  keySources(): ReadonlyMap<string, NeededKeys> {
    const objects = this.objects.ofKind<RequestAuthentication>('RequestAuthentication')
    if (this.#keySources.of === objects) return this.#keySources.sources
    const sources = neededKeys(objects)
    this.#keySources = { of: objects, sources }
    return this.#keySources.sources
  }

  /** Sets the keys of a source, or removes them. Returns whether they differ from before. */
  setKeySet(source: string, content: string | undefined): boolean {
    if (this.#keySets.get(source) === content) return false
    const keySets = new Map(this.#keySets)
    if (content === undefined) keySets.delete(source)
    else keySets.set(source, content)
    this.#keySets = keySets
    this.#settingsChanged = true
    return true
  }

  /** The last snapshot. */
  get current(): MeshSnapshot {
    return this.#snapshot
  }

  /** Makes a snapshot of the present state at `now` (monotonic milliseconds), and returns the changes since the last one. */
  take(now: number): { snapshot: MeshSnapshot; changes: Changes } {
    this.objects.endVersion(now)
    this.#entries.reselect()
    const merge = this.services.merge()
    this.#findNodeHosts(merge)
    const undiscovered = this.#discovery.takeFaults()
    if (undiscovered) this.#faults.replace('discovery', undiscovered)
    this.#indexes.update([...this.#changed.keys()].map(kindOfKey), this.meshes.inForce.value)
    this.#findGateways(merge)
    const before = this.#snapshot
    this.#snapshot = this.#build(merge, before)
    const pods = this.#snapshot.pods !== before.pods
    const changes: Changes = {
      objects: [...this.#changed.values()],
      services: merge.redefined,
      hosts: merge.hosts,
      pods,
      settings: this.#settingsChanged,
    }
    this.#changed = new Map()
    this.#settingsChanged = false
    return { snapshot: this.#snapshot, changes }
  }

  #findNodeHosts({ services, redefined }: Merge): void {
    const prefers = (host: string) => services.get(host)?.some(({ service }) => service.distribution === 'PreferSameNode') ?? false
    const changed = [...redefined].filter((host) => prefers(host) !== this.#nodeHosts.has(host))
    if (changed.length === 0) return
    const hosts = new Set(this.#nodeHosts)
    for (const host of changed) if (!hosts.delete(host)) hosts.add(host)
    this.#nodeHosts = hosts
  }

  /**
   * Updates the network gateways. A gateway may be a service, and Gateways say what it passes on, so changes of these can change the endpoints of
   * all services of a network.
   */
  #findGateways({ services }: Merge): void {
    const before = this.#gateways
    const found = contain(
      () => {
        const owners = { system: this.#systemNetworks, own: this.#settings.features.CLUSTER_ID }
        const configured = { gateways: this.#indexes.of('Gateway'), isScoped: this.#settings.features.PILOT_SCOPE_GATEWAY_TO_NAMESPACE }
        return networkGateways(this.networks.inForce.value, services, this.services.networkGateways, owners, configured)
      },
      (reason) => {
        const fault = { type: 'network', resource: 'gateways of all networks', objects: [], reason, consequence: consequences.kept }
        return { gateways: before, faults: [fault] }
      },
    )
    this.#faults.replace('networks', found.faults)
    if (sameGateways(found.gateways, before)) return
    this.#gateways = found.gateways
    this.#settingsChanged = true
  }

  /** The visibility index, computed again when one of its inputs changed. */
  #findVisibility(inputs: VisibilityInputs): Visibility {
    const known = this.#visibility
    if (!known) return (this.#visibility = visibilityOf(inputs, undefined)).visibility
    if (sameInputs(known.inputs, inputs)) return known.visibility
    return this.#faults.attempt(
      'visibility',
      { type: 'index', resource: 'visibility' },
      () => {
        this.#visibility = visibilityOf(inputs, known)
        this.#faults.replace('visible objects', this.#visibility.faults)
        return this.#visibility.visibility
      },
      known.visibility,
      true,
    )
  }

  #build({ services, definitions, vipClusters }: Merge, before: MeshSnapshot | undefined): MeshSnapshot {
    const destinationRules = this.#indexes.of('DestinationRule')
    const virtualServices = this.#indexes.of('VirtualService')
    const policies = {
      authorization: this.#indexes.of('AuthorizationPolicy'),
      requests: this.#indexes.of('RequestAuthentication'),
      peers: this.#indexes.of('PeerAuthentication'),
    }
    const allocated = before && this.#allocatedFor === definitions ? before.allocated : new AllocatedAddresses(services)
    this.#allocatedFor = definitions
    const same = before && (Object.keys(policies) as (keyof typeof policies)[]).every((part) => before.policies[part] === policies[part])
    return {
      settings: this.#settings,
      mesh: this.meshes.inForce.value,
      networks: this.#networksInForce,
      systemNetworks: this.#systemNetworks,
      networkGateways: this.#gateways,
      services,
      nodeHosts: this.#nodeHosts,
      vipClusters,
      allocated,
      destinationRules,
      virtualServices,
      visibility: this.#findVisibility({
        mesh: this.meshes.inForce.value,
        domain: this.#settings.domain,
        services,
        definitions,
        destinationRules,
        virtualServices,
      }),
      sidecars: this.#indexes.of('Sidecar'),
      gateways: this.#indexes.of('Gateway'),
      envoyFilters: this.#indexes.of('EnvoyFilter'),
      policies: same ? before.policies : policies,
      keySets: this.#keySets,
      pods: this.#clusters.takePods(),
    }
  }
}
