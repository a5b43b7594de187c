/**
 * Turns events into pushes: owns the mesh state, the classes of the connected proxies and the groups they use, and computes for each push
 * the patches that update every writer. Pure: no threads, no clock, no sockets.
 */
import { hash } from 'node:crypto'
import type { ProxyNode } from '../../protocols/data.ts'
import type { ClassAssignment, Manifest } from '../../protocols/messages/push.ts'
import { configKey, keyAt } from '../config/kinds.ts'
import { contain, Faults, type ResourceFault } from '../model/faults.ts'
import { proxyName, readNode } from '../model/proxy.ts'
import { proxyLabels, type ServiceInstance } from '../model/workload.ts'
import { InstanceIndex } from '../snapshot/instances.ts'
import { serviceKey } from '../snapshot/objects.ts'
import { allPolicies, policiesFor } from '../snapshot/policies.ts'
import { type Changes, isNothing, isOnlyEndpoints, type MeshSnapshot, type Settings } from '../snapshot/snapshot.ts'
import { MeshState } from '../snapshot/state.ts'
import { GroupStore } from '../xds/slab/group-store.ts'
import { SlabStore } from '../xds/slab/slab-store.ts'
import { KeyedSums } from '../xds/slab/sums.ts'
import type { ProxyClass } from '../xds/traits.ts'
import type { Present, PushChanges } from './audience.ts'
import { EmptyClasses } from './classes/empty-classes.ts'
import { classOf, sameClass } from './classes/proxy-class.ts'
import { ProxyIndex } from './classes/proxy-index.ts'
import { type Refusal, Refusals, type RefusedResource } from './classes/refusals.ts'
import { GroupBuilder } from './group-builder.ts'

/**
 * The maximum number of times that one refusal is processed. It is processed again when the new configuration still contains a refused
 * resource version.
 */
const maxAttempts = 8

/** The owner of everything that pushes are made from. */
export class Planner {
  readonly state: MeshState
  readonly faults: Faults
  readonly slabs: SlabStore
  readonly groups: GroupStore
  readonly builder: GroupBuilder
  /** The present state, for writers that do not have all of it. */
  readonly present: Present = {
    manifest: (classId) => this.#manifests.get(classId),
    wholePatch: (group) => this.groups.wholePatch(group),
    slab: (id) => this.slabs.data(id),
  }
  readonly #proxies = new ProxyIndex()
  readonly #classes = new Map<string, ProxyClass>()
  readonly #members = new Map<string, number>()
  /** Classes without proxies. */
  readonly #empty = new EmptyClasses()
  /**
   * Transitional classes, for proxies that have just changed their class and keep removed groups for a short time, with the class that
   * follows.
   */
  readonly #transitional = new Map<string, string>()
  /**
   * Ids of transitional classes for which no groups had to be kept, since the last {@link advance}. Their proxies were assigned to their
   * class directly.
   */
  readonly #directlyAssigned = new Set<string>()
  /** The time of the last {@link advance}, in monotonic milliseconds. */
  #now = 0
  readonly #manifests = new Map<string, Manifest>()
  readonly #instances = new InstanceIndex()
  readonly #refusals = new Refusals()
  /** The snapshot that the proxies were classified by. */
  #classified: MeshSnapshot
  #assignments: ClassAssignment[] = []
  #changedManifests = new Set<string>()
  #retiredClasses: string[] = []
  #ledger = ''
  /** The changes of {@link advance}s that failed as a whole. They are processed again by the next one. */
  #missed: Changes | undefined

  /**
   * `found` is called with every fault when it is found. Slabs and patches are numbered from `first`, which must be above all numbers that
   * an earlier planner has sent to the same writers.
   */
  constructor(settings: Settings, found?: (fault: ResourceFault) => void, first = 0) {
    this.slabs = new SlabStore(first)
    this.faults = new Faults(found)
    this.state = new MeshState(settings, this.faults)
    const sums = new KeyedSums(settings.versionKey)
    this.groups = new GroupStore(this.slabs, sums, first)
    this.builder = new GroupBuilder(this.state.current, this.groups, this.faults, sums)
    this.#classified = this.state.current
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
    return [...this.#proxies.entries()].map(([connection, { node, classId }]) => ({ connection, node, proxyClass: this.#classes.get(classId) }))
  }

  /** The service instances of a proxy's workload. */
  instancesOf({ addresses, namespace }: ProxyNode): readonly ServiceInstance[] {
    const isOptedOut = this.snapshot.settings.optOuts.has('own-namespace-instances')
    return this.#instances.of(addresses, isOptedOut ? undefined : namespace)
  }

  /** The classes in use. */
  classes(): Iterable<ProxyClass> {
    return this.#classes.values()
  }

  /** The number of classes in use. */
  get classCount(): number {
    return this.#classes.size
  }

  /** The number of connected sidecars whose addresses no endpoint of a service has. */
  get sidecarsWithoutEndpoint(): number {
    let count = 0
    for (const [id, members] of this.#members) {
      const proxyClass = this.#classes.get(id)
      if (proxyClass?.traits.type === 'sidecar' && proxyClass.instances.length === 0) count += members
    }
    return count
  }

  /** The id of the class that a proxy would belong to; empty if it cannot be determined. No resources are made. */
  classIdOf(node: ProxyNode): string {
    return contain(
      () => classOf(node, this.instancesOf(node), this.snapshot).id,
      () => '',
    )
  }

  /** Adds a connected proxy: finds its class and builds what the class needs. The result is part of the next {@link takePush}. */
  connect(connection: string, node: ProxyNode): void {
    this.#proxies.add(connection, node)
    this.#classify(connection)
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
      return classOf({ ...node, takesVirtualHosts }, [], this.snapshot)
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
    const proxy = this.#proxies.delete(connection)
    if (!proxy) return
    this.faults.clear(`proxy|${connection}`)
    this.faults.clear(`refused|${connection}`)
    this.#refusals.forget(connection)
    this.#leave(proxy.classId)
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
      const proxy = this.#proxies.get(connection)
      const proxyClass = proxy && this.#classes.get(proxy.classId)
      if (!proxy || !proxyClass) break
      const resources = this.#present(proxy.classId, refusal)
      // Resources that have changed since the refusal are not concerned by it.
      if (isNamed ? resources.length === 0 : proxy.classId !== classId) break
      const base = classOf(proxy.node, this.instancesOf(proxy.node), this.snapshot)
      if (!this.#refusals.refused(connection, base, proxyClass, { ...refusal, proxy: proxyName(proxy.node), resources }, this.#objectsOf(proxyClass)))
        break
      isChanged = true
      this.#classify(connection)
    }
    this.faults.replace(`refused|${connection}`, this.#refusals.faults(connection))
    return isChanged
  }

  /** Keys of the objects that may be the cause of what a proxy refused. */
  blamed(connection: string): string[] {
    return [...new Set(this.#refusals.faults(connection).flatMap(({ objects }) => objects))]
  }

  /**
   * The refused resources that the class still has in the refused version, with their patch contexts. Resources that it keeps for a short
   * time after their removal are not among them.
   */
  #present(classId: string, { typeUrl, resources }: Omit<Refusal, 'proxy'>): RefusedResource[] {
    const kept = this.builder.keptGroups(classId)
    const groups = (this.#manifests.get(classId)?.groups[typeUrl] ?? []).map(({ group }) => group).filter((group) => !kept.has(group))
    return resources.flatMap(({ name, version }) => {
      const group = groups.find((id) => this.groups.resources(id).get(name)?.version === version && !this.groups.isLeaving(id, name))
      const context = group === undefined ? undefined : contextOfGroup(group)
      return group === undefined ? [] : { name, version, ...(context ? { context } : {}) }
    })
  }

  /** Keys of the objects that the listeners of a class are made from: policies, Gateways, Sidecar and services. */
  #objectsOf(proxyClass: ProxyClass): string[] {
    const { policies, mesh } = this.snapshot
    const selecting = allPolicies(policiesFor(policies, mesh.rootNamespace, proxyClass))
    const { sidecar } = proxyClass.viewKey
    const services = proxyClass.instances.map(({ service }) => serviceKey(service))
    const gateways = proxyClass.gateways.map((name) => keyAt('Gateway', name))
    return [...new Set([...selecting.map(configKey), ...gateways, ...(sidecar ? [configKey(sidecar)] : []), ...services])]
  }

  /** Takes all events so far into a new snapshot and builds what changed. `now` is in monotonic milliseconds. Returns the changes. */
  advance(now = 0): Changes {
    const { snapshot, changes: taken } = this.state.take(now)
    this.#ledger = this.state.objects.ledger
    this.#now = now
    this.#directlyAssigned.clear()
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
    const moved = this.#updateInstances(snapshot, changes)
    this.builder.advance(snapshot, changes, now)
    this.#refreshClasses(snapshot, changes, moved)
    // Classes without proxies were not classified again and are based on old state.
    if (!isOnlyEndpoints(changes)) for (const [id, members] of this.#members) if (members === 0) this.#drop(id)
    this.#buildClasses(this.builder.outdatedClasses)
    this.#remake()
    this.builder.retain()
  }

  /** Builds the groups that are outdated or failed as a whole. */
  #remake(): void {
    this.builder.retryFailed()
    this.#buildClasses(this.builder.remake())
  }

  #buildClasses(ids: Iterable<string>): void {
    for (const id of ids) {
      const proxyClass = this.#classes.get(id)
      if (proxyClass) this.#buildClass(id, proxyClass)
    }
  }

  /** Removes resources that were kept until routes to them were replaced and that are due by `now`. Default: all of them. */
  sweep(now = Number.POSITIVE_INFINITY): void {
    const finished = new Set<string>()
    for (const id of this.builder.sweep(now)) {
      if (this.#transitional.has(id) && !this.builder.isLingering(id)) finished.add(id)
      else this.#buildClasses([id])
    }
    if (finished.size > 0) for (const [connection, { classId }] of this.#proxies.entries()) if (finished.has(classId)) this.#classify(connection)
    for (const id of finished) if (this.#members.get(id) === 0) this.#drop(id)
    this.builder.retain()
  }

  /** Returns the changes since the last call. The push to each writer is computed from them in `audience.ts`. */
  takePush(): PushChanges {
    const groups = this.groups.takePatches()
    const manifests = [...this.#changedManifests].flatMap((id) => this.#manifests.get(id) ?? [])
    this.#changedManifests.clear()
    return {
      whole: false,
      retiredSlabs: this.slabs.takeRetired(),
      groups,
      manifests,
      retiredClasses: this.#retiredClasses.splice(0),
      // Proxies may have disconnected since they were assigned a class.
      assignments: this.#assignments.splice(0).filter(({ connection }) => this.#proxies.get(connection)),
    }
  }

  /**
   * The class assignments of all proxies, for writers that have no state or a wrong one. Proxies whose class could not be made are left
   * out.
   */
  assignments(): ClassAssignment[] {
    return [...this.#proxies.entries()].flatMap(([connection, { classId }]) => (classId === '' ? [] : [{ connection, classId }]))
  }

  /** A digest of all objects and their generations as of the last {@link advance}, twelve characters long. */
  get ledger(): string {
    return this.#ledger
  }

  #updateInstances(snapshot: MeshSnapshot, changes: Changes): Set<string> {
    const connections = new Set<string>()
    for (const host of changes.hosts)
      for (const address of this.#instances.update(host, snapshot.services.get(host)))
        for (const connection of this.#proxies.at(address)) connections.add(connection)
    return connections
  }

  /** Classifies proxies again: those whose own services changed (`moved`), and those that changed objects may select. */
  #refreshClasses(snapshot: MeshSnapshot, changes: Changes, moved: ReadonlySet<string>): void {
    const connections = new Set([...moved, ...this.#proxies.reclassified(this.#classified, snapshot, changes)])
    for (const connection of connections) this.#classify(connection)
    this.#classified = snapshot
  }

  /** Finds the class of a proxy. If that fails, the proxy keeps its present class. */
  #classify(connection: string): void {
    const proxy = this.#proxies.get(connection)
    if (!proxy) return
    const subject = { type: 'class', resource: proxy.node.id }
    const find = () => {
      const instances = this.instancesOf(proxy.node)
      this.#proxies.label(connection, proxyLabels(proxy.node, instances))
      return this.#classWithout(connection, proxy.node, instances)
    }
    const proxyClass = this.faults.attempt<ProxyClass | undefined>(`proxy|${connection}`, subject, find, undefined, proxy.classId !== '')
    if (!proxyClass) return
    const id = this.#classIdFor(proxy.classId, proxyClass)
    const known = this.#classes.get(id)
    // An equal class must stay the same object, because groups are rebuilt when it is another object.
    if (!known || !sameClass(known, proxyClass)) {
      this.#classes.set(id, proxyClass)
      this.#buildClass(id, proxyClass)
    }
    if (proxy.classId === id) return
    this.#members.set(id, (this.#members.get(id) ?? 0) + 1)
    this.#empty.delete(id)
    this.#leave(proxy.classId)
    proxy.classId = id
    this.#assignments.push({ connection, classId: id })
  }

  /** The class of a proxy, without what the proxy refused. */
  #classWithout(connection: string, node: ProxyNode, instances: readonly ServiceInstance[]): ProxyClass {
    const proxyClass = classOf(node, instances, this.snapshot)
    if (!this.#refusals.concerns(connection)) return proxyClass
    const present = new Set(proxyClass.traits.filters.flatMap(({ spec }) => spec.configPatches ?? []))
    if (this.#refusals.prune(connection, present)) this.faults.replace(`refused|${connection}`, this.#refusals.faults(connection))
    return classOf(node, instances, this.snapshot, this.#refusals.fallback(connection))
  }

  /**
   * The id of the class to assign to a proxy that was in class `from`: its own class, or, while groups of `from` have to be kept, a
   * transitional class for proxies that came from there.
   */
  #classIdFor(from: string, proxyClass: ProxyClass): string {
    const { id: own } = proxyClass
    if (from === '' || from === own) return own
    if (this.#transitional.get(from) === own && this.builder.isLingering(from)) return from
    const id = hash('sha1', `${own} from ${from} at ${this.#now}`, 'hex').slice(0, 20)
    if (this.#transitional.has(id)) return id
    if (this.#directlyAssigned.has(id)) return own
    this.#classes.set(id, this.#classes.get(own) ?? proxyClass)
    this.#transitional.set(id, own)
    this.#members.set(id, 0)
    this.#buildClass(id, proxyClass, from)
    if (this.builder.isLingering(id)) return id
    this.#drop(id)
    this.#directlyAssigned.add(id)
    return own
  }

  #leave(classId: string): void {
    const members = this.#members.get(classId)
    if (members !== undefined) this.#members.set(classId, members - 1)
  }

  #buildClass(id: string, proxyClass: ProxyClass, from = id): void {
    const before = this.#manifests.get(id)
    const { sidecar } = proxyClass.viewKey
    const subject = { type: 'class', resource: id, objects: sidecar ? [configKey(sidecar)] : [] }
    const make = () => this.builder.groupsFor(proxyClass, id, from)
    const groups = this.faults.attempt<Manifest['groups'] | undefined>(`class|${id}`, subject, make, undefined, before !== undefined)
    if (!groups) return
    const policies = this.builder.policiesOf(id)
    if (before && before.policies === policies && JSON.stringify(before.groups) === JSON.stringify(groups)) return
    this.#manifests.set(id, { classId: id, groups, ...(policies === undefined ? {} : { policies }) })
    this.#changedManifests.add(id)
  }

  /**
   * Drops the classes that have had no proxies for the time of {@link EmptyClasses}, and the groups that only they used, so that proxies that reconnect
   * soon find everything in place. A change of configuration drops such classes at once. `now` is in monotonic milliseconds. Returns
   * whether anything was dropped; then there is a push to take.
   */
  collect(now: number): boolean {
    const before = this.#classes.size
    for (const [id, members] of this.#members) if (members === 0) this.#empty.add(id, now)
    for (const id of this.#empty.expired(now)) this.#drop(id)
    if (this.#classes.size === before) return false
    this.builder.retain()
    return true
  }

  #drop(id: string): void {
    this.#empty.delete(id)
    this.#transitional.delete(id)
    this.#members.delete(id)
    this.#classes.delete(id)
    this.#manifests.delete(id)
    this.#changedManifests.delete(id)
    this.faults.clear(`class|${id}`)
    this.builder.dropClass(id)
    this.#retiredClasses.push(id)
  }
}

function joined(one: Changes, other: Changes): Changes {
  return {
    objects: [...one.objects, ...other.objects],
    services: new Set([...one.services, ...other.services]),
    hosts: new Set([...one.hosts, ...other.hosts]),
    settings: one.settings || other.settings,
  }
}

/** The patch context of the resources of a group. Undefined when it is unknown. */
function contextOfGroup(id: string): RefusedResource['context'] {
  if (id.startsWith('listeners-in|') || id.startsWith('clusters-in|')) return 'SIDECAR_INBOUND'
  return id.startsWith('listeners-out|') ? 'SIDECAR_OUTBOUND' : undefined
}
