/**
 * Turns events into pushes: owns the mesh state, the classes of the connected proxies and the groups they use, and computes for each push
 * the group updates for every writer. Pure: no threads, no clock, no sockets.
 */
import type { ProxyNode } from '../../protocols/data.ts'
import type { ClassAssignment } from '../../protocols/messages/push.ts'
import { configKey, keyAt } from '../config/kinds.ts'
import { contain, Faults, type ResourceFault } from '../model/faults.ts'
import { proxyName, readNode } from '../model/proxy.ts'
import { proxyLabels, type ServiceInstance } from '../model/workload.ts'
import { allPolicies, policiesFor } from '../snapshot/policies.ts'
import { type Changes, isNothing, isOnlyEndpoints, type MeshSnapshot, type Settings } from '../snapshot/snapshot.ts'
import { MeshState } from '../snapshot/state.ts'
import { GroupStore } from '../xds/slab/group-store.ts'
import { SlabStore } from '../xds/slab/slab-store.ts'
import { KeyedSums } from '../xds/slab/sums.ts'
import type { ProxyClass } from '../xds/traits.ts'
import type { Present, PushChanges } from './audience.ts'
import { Classes } from './classes/classes.ts'
import { OwnInstances } from './classes/own-instances.ts'
import { classOf } from './classes/proxy-class.ts'
import { type Refusal, Refusals, type RefusedResource, type WithdrawnFrom } from './classes/refusals.ts'
import { refusedObjects } from './classes/refused-objects.ts'
import type { ServedClass } from './classes/served-class.ts'
import { type SeenWorkload, Unselected } from './classes/unselected.ts'
import { GroupBuilder } from './group-builder.ts'

/**
 * The maximum number of times that one answer of a proxy is processed. It is processed again when the new configuration still contains a
 * refused resource version, or an accepted one. It is more than what can be tried of one set of patches.
 */
const maxAttempts = 48

/** The owner of everything that pushes are made from. */
export class Planner {
  readonly state: MeshState
  readonly faults: Faults
  readonly slabs: SlabStore
  readonly groups: GroupStore
  readonly builder: GroupBuilder
  /** The present state, for writers that do not have all of it. */
  readonly present: Present = {
    manifest: (classId) => this.#classes.get(classId)?.manifest,
    wholeUpdate: (group) => this.groups.wholeUpdate(group),
    slab: (id) => this.slabs.data(id),
  }
  readonly #classes: Classes
  readonly #instances: OwnInstances
  readonly #refusals = new Refusals()
  #digest = ''
  /** The changes of {@link advance}s that failed as a whole. They are processed again by the next one. */
  #missed: Changes | undefined

  /**
   * `found` is called with every fault when it is found. Slabs and updates are numbered from `first`, which must be above all numbers that
   * an earlier planner has sent to the same writers.
   */
  constructor(settings: Settings, found?: (fault: ResourceFault) => void, first = 0) {
    this.slabs = new SlabStore(first)
    this.faults = new Faults(found)
    this.state = new MeshState(settings, this.faults)
    const sums = new KeyedSums(settings.versionKey)
    this.groups = new GroupStore(this.slabs, sums, first)
    this.builder = new GroupBuilder(this.state.current, this.groups, this.faults, sums)
    this.#instances = new OwnInstances(this.builder.record)
    this.#classes = new Classes({ instances: this.#instances, refusals: this.#refusals, builder: this.builder, faults: this.faults })
  }

  get snapshot(): MeshSnapshot {
    return this.state.current
  }

  /** Whether the last {@link advance}, or a group, failed as a whole, so that another one is needed without a further change. */
  get isBehind(): boolean {
    return this.#missed !== undefined || this.builder.hasFailed
  }

  /** All connections with their nodes and classes. */
  proxies(): { connection: string; node: ProxyNode; proxyClass: ProxyClass | undefined }[] {
    return Array.from(this.#classes.proxies, ({ connection, node, served }) => ({ connection, node, proxyClass: served?.proxyClass }))
  }

  /** The service instances of a proxy's workload. */
  instancesOf(node: ProxyNode): readonly ServiceInstance[] {
    return this.#instances.of(node, this.builder.snapshot.podOf(node))
  }

  /** The labels of a proxy that selectors look at. */
  labelsOf(node: ProxyNode): Readonly<Record<string, string>> {
    return proxyLabels(node, this.instancesOf(node), this.builder.snapshot.podOf(node))
  }

  /** The classes in use. */
  classes(): ProxyClass[] {
    return Array.from(this.#classes, ({ proxyClass }) => proxyClass)
  }

  /** The number of classes in use. */
  get classCount(): number {
    return this.#classes.size
  }

  /** The number of connected sidecars that are the workload of no service. */
  get sidecarsWithoutEndpoint(): number {
    let count = 0
    for (const { proxyClass, connections } of this.#classes)
      if (proxyClass.traits.type === 'sidecar' && proxyClass.instances.length === 0) count += connections
    return count
  }

  /** The class that a connected proxy is assigned to. Undefined while none could be found. */
  servedClass(connection: string): ServedClass | undefined {
    return this.#classes.proxy(connection)?.served
  }

  /** The id of the class that a proxy would belong to; empty if it cannot be determined. No resources are made. */
  classIdOf(node: ProxyNode): string {
    return contain(
      () => this.#classes.baseOf(node).id,
      () => '',
    )
  }

  /** Adds a connected proxy: finds its class and builds what the class needs. The result is part of the next {@link takePush}. */
  connect(connection: string, node: ProxyNode): void {
    this.#classes.connect(connection, node)
  }

  /**
   * Makes in advance what an ordinary sidecar of each namespace with services needs. Yields the number of bytes made at each step. After a
   * new snapshot the remaining steps are pointless.
   */
  prepare(): Iterator<number> {
    const steps = this.#preparation()
    const step = (): IteratorResult<number> =>
      contain<IteratorResult<number>>(
        () => steps.next(),
        () => ({ done: true, value: undefined }),
      )
    return { next: step }
  }

  *#preparation(): Generator<number> {
    const { settings, visibility } = this.snapshot
    const ordinary = (namespace: string, takesVirtualHosts: boolean) => {
      const id = `sidecar~127.0.0.1~ahead.${namespace}~${namespace}.svc`
      const node = readNode({ id, metadata: { NAMESPACE: namespace }, locality: undefined }, settings.names, false)
      return classOf({ ...node, takesVirtualHosts }, [], this.builder.snapshot)
    }
    yield* this.builder.prepare(ordinary('default', false))
    const counted = new Set<string>()
    for (const namespace of visibility.hostsNaming.keys())
      for (const takesVirtualHosts of [false, true]) yield this.builder.prepareGroups(ordinary(namespace, takesVirtualHosts), counted)
  }

  /**
   * Removes a disconnected proxy. Its class is dropped by {@link collect}, or by the next change of configuration, if it has no other
   * proxies.
   */
  disconnect(connection: string): void {
    if (!this.#classes.disconnect(connection)) return
    this.faults.clear(`refused|${connection}`)
    this.#refusals.forget(connection)
  }

  /**
   * Handles a response that a proxy refused: the proxy is sent its configuration without the patches that may be the cause, or, if the
   * policies changed together with the response, a listener that denies everything. Returns whether its configuration changed; then there
   * is a push to take.
   */
  refused(connection: string, classId: string, refusal: Omit<Refusal, 'proxy'>): boolean {
    const isNamed = refusal.resources.length > 0
    let isChanged = false
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      const proxy = this.#classes.proxy(connection)
      const served = proxy?.served
      if (!proxy || !served) break
      const { proxyClass } = served
      const resources = this.#present(served, refusal)
      // Resources that have changed since the refusal are not concerned by it.
      if (isNamed ? resources.length === 0 : served.id !== classId) break
      const base = this.#classes.baseOf(proxy.node)
      const { typeUrl: type } = refusal
      const objects = refusedObjects({ type, proxyClass, view: this.builder.view(proxyClass.viewKey), selecting: this.#selecting(proxyClass) })
      if (!this.#refusals.refused(connection, base, proxyClass, { ...refusal, proxy: proxyName(proxy.node), resources }, objects)) break
      isChanged = true
      this.#classes.classify(proxy)
    }
    this.faults.replace(`refused|${connection}`, this.#refusals.faults(connection))
    return isChanged
  }

  /**
   * Handles an acknowledgement of resources that a proxy refused before in other versions. Returns whether its configuration changed, since
   * withdrawn patches are tried again; then there is a push to take.
   */
  accepted(connection: string, accepted: Pick<Refusal, 'typeUrl' | 'resources'>): boolean {
    let isChanged = false
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      const proxy = this.#classes.proxy(connection)
      if (!proxy?.served) break
      const resources = this.#present(proxy.served, accepted)
      if (resources.length === 0) break
      if (!this.#refusals.accepted(connection, this.#classes.baseOf(proxy.node), accepted.typeUrl, resources)) break
      isChanged = true
      this.#classes.classify(proxy)
    }
    this.faults.replace(`refused|${connection}`, this.#refusals.faults(connection))
    return isChanged
  }

  /** All resources that proxies refused. */
  refusals(): ReturnType<Refusals['all']> {
    return this.#refusals.all()
  }

  /** The objects of which patches are withdrawn, with what the proxy said: each once for each proxy. */
  withdrawn(): Iterable<WithdrawnFrom> {
    return this.#refusals.withdrawn()
  }

  /** Keys of the objects that may be the cause of what a proxy refused. */
  blamed(connection: string): string[] {
    return [...new Set(this.#refusals.faults(connection).flatMap(({ objects }) => objects))]
  }

  /**
   * The resources of an answer that the class still has in that version, with their patch contexts. Resources that it keeps for a short
   * time after their removal are not among them.
   */
  #present({ uses }: ServedClass, { typeUrl, resources }: Pick<Refusal, 'typeUrl' | 'resources'>): RefusedResource[] {
    const groups = uses.flatMap(({ group }) => (group.typeUrl === typeUrl ? group.id : []))
    return resources.flatMap(({ name, version }) => {
      const group = groups.find((id) => this.groups.resources(id).get(name)?.version === version && !this.groups.isLeaving(id, name))
      const context = group === undefined ? undefined : contextOfGroup(group)
      return group === undefined ? [] : { name, version, ...(context ? { context } : {}) }
    })
  }

  /** Keys of the policies, Gateways and Sidecar that select the proxies of a class. */
  #selecting(proxyClass: ProxyClass): string[] {
    const { policies, mesh } = this.snapshot
    const selecting = allPolicies(policiesFor(policies, mesh.rootNamespace, proxyClass))
    const { sidecar } = proxyClass.viewKey
    const gateways = proxyClass.gateways.map((name) => keyAt('Gateway', name))
    return [...selecting.map(configKey), ...gateways, ...(sidecar ? [configKey(sidecar)] : [])]
  }

  /**
   * Those keys of policies, Gateways, Sidecars and EnvoyFilters that are there and select none of the connected proxies; of EnvoyFilters also those that have no patch for the version and
   * metadata of any. Takes time for each class.
   */
  selectingNone(keys: readonly string[]): string[] {
    const left = new Set(keys.filter((key) => this.state.object(key) !== undefined))
    for (const { proxyClass } of this.#classes) {
      if (left.size === 0) break
      for (const key of this.#selecting(proxyClass)) left.delete(key)
      for (const filter of proxyClass.traits.filters) left.delete(configKey(filter))
    }
    // A proxy that refused all patches of an EnvoyFilter is selected by it.
    if (left.size > 0) for (const { key } of this.withdrawn()) left.delete(key)
    return [...left]
  }

  /** Whether a gateway is connected. */
  get hasRouters(): boolean {
    for (const { node } of this.#classes.proxies) if (node.type === 'router') return true
    return false
  }

  /**
   * Finds the keys of the objects that select neither a connected proxy nor another workload that is known; of those that select gateways alone none
   * while no gateway is connected. Yields after each piece of work, of some milliseconds at most.
   */
  *selectingNothing(): Generator<undefined, string[]> {
    const { snapshot } = this
    const left = new Unselected()
    yield* left.read(snapshot, this.hasRouters)
    for (const workload of this.#knownWorkloads(snapshot)) {
      if (left.isEmpty) break
      yield* left.take(workload)
    }
    return left.keys.filter((key) => this.state.object(key) !== undefined)
  }

  /** The connected proxies, the endpoints of services, and the pods. */
  *#knownWorkloads({ services, pods }: MeshSnapshot): Generator<SeenWorkload> {
    for (const { node } of this.#classes.proxies) yield { type: node.type, namespace: node.namespace, labels: this.labelsOf(node) }
    for (const states of services.values()) for (const { endpoints } of states) yield* endpoints
    for (const known of pods.values()) yield* known
  }

  /** Takes all events so far into a new snapshot and builds what changed. `now` is in monotonic milliseconds. Returns the changes. */
  advance(now = 0): Changes {
    const { snapshot, changes: taken } = this.state.take(now)
    this.#digest = this.state.objects.digest
    this.#classes.begin(now)
    const changes = this.#missed ? joined(this.#missed, taken) : taken
    if (isNothing(changes)) {
      this.#remake()
      return changes
    }
    const subject = { type: 'push', resource: 'everything that changed' }
    this.#missed = this.faults.attempt('push', subject, () => this.#apply(snapshot, changes, now), changes, true)
    return changes
  }

  #apply(snapshot: MeshSnapshot, changes: Changes, now: number): undefined {
    this.#instances.update(changes.hosts, snapshot.services)
    this.builder.advance(snapshot, now)
    this.#classes.classifyOutdated()
    // Classes without proxies were not found again and are based on old state.
    if (!isOnlyEndpoints(changes)) this.#classes.dropEmpty()
    this.#makeClasses(this.builder.outdatedClasses)
    this.#remake()
    this.builder.retain()
  }

  /** Builds the groups that are outdated or failed as a whole. */
  #remake(): void {
    this.builder.retryFailed()
    this.#makeClasses(this.builder.remake())
  }

  #makeClasses(classes: Iterable<ServedClass>): void {
    for (const served of classes) this.#classes.make(served)
  }

  /** Removes resources that were kept until routes to them were replaced and that are due by `now`. Default: all of them. */
  sweep(now = Number.POSITIVE_INFINITY): void {
    const ended = new Set<ServedClass>()
    for (const served of this.builder.sweep(now)) {
      if (served.isTransitional && served.kept.length === 0) ended.add(served)
      else this.#classes.make(served)
    }
    this.#classes.endTransitions(ended)
    this.builder.retain()
  }

  /** Returns the changes since the last call. The push to each writer is computed from them in `audience.ts`. */
  takePush(): PushChanges {
    const groups = this.groups.takeUpdates()
    return { whole: false, retiredSlabs: this.slabs.takeRetired(), groups, ...this.#classes.take() }
  }

  /**
   * The class assignments of all proxies, for writers that have no state or a wrong one. Proxies whose class could not be made are left
   * out.
   */
  assignments(): ClassAssignment[] {
    return [...this.#classes.proxies].flatMap(({ connection, served }) => (served ? [{ connection, classId: served.id }] : []))
  }

  /** A digest of all objects and their generations as of the last {@link advance}, twelve characters long. */
  get digest(): string {
    return this.#digest
  }

  /**
   * Drops the classes that have had no proxies for a grace period, and the groups that only they used, so that proxies that reconnect soon
   * find everything in place. A change of configuration drops such classes at once. `now` is in monotonic milliseconds. Returns
   * whether anything was dropped; then there is a push to take.
   */
  collect(now: number): boolean {
    if (!this.#classes.collect(now)) return false
    this.builder.retain()
    return true
  }
}

function joined(one: Changes, other: Changes): Changes {
  return {
    objects: [...one.objects, ...other.objects],
    services: new Set([...one.services, ...other.services]),
    hosts: new Set([...one.hosts, ...other.hosts]),
    pods: one.pods || other.pods,
    settings: one.settings || other.settings,
  }
}

/** The patch context of the resources of a group. Undefined when it is unknown. */
function contextOfGroup(id: string): RefusedResource['context'] {
  if (id.startsWith('listeners-in|') || id.startsWith('clusters-in|')) return 'SIDECAR_INBOUND'
  return id.startsWith('listeners-out|') ? 'SIDECAR_OUTBOUND' : undefined
}
