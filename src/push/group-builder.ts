/**
 * Builds the resource groups of the classes, for one snapshot after another. The reads of each group are recorded, and a group is built
 * again when something that it read, or one of its given inputs, has changed. Values made from unchanged inputs are reused.
 */

import type { GroupUse } from '../../protocols/messages/push.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import { sameItems } from '../model/lists.ts'
import { policiesDigest, policiesFor } from '../snapshot/policies.ts'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'
import { buildView, type View, type ViewKey } from '../snapshot/view.ts'
import { divideOutcomes, type ListenerConflict } from '../xds/draft.ts'
import type { GroupStore } from '../xds/slab/group-store.ts'
import type { Resource } from '../xds/slab/resource.ts'
import type { KeyedSums } from '../xds/slab/sums.ts'
import type { ProxyClass } from '../xds/traits.ts'
import { type ClassGroup, type ClassUse, ServedClass } from './classes/served-class.ts'
import { Dependencies, type Product } from './dependencies/dependencies.ts'
import { Memo } from './dependencies/memo.ts'
import { SnapshotReader } from './dependencies/snapshot-reader.ts'
import { filterExtensions } from './groups/extension-groups.ts'
import { Lingering, lingeringTypes } from './groups/lingering.ts'
import { ListenerGroups } from './groups/listener-groups.ts'
import { type GroupMaker, type Making, objectsOf } from './groups/making.ts'
import { NameTableGroups } from './groups/name-table-groups.ts'
import { OutboundGroups } from './groups/outbound-groups.ts'
import { ProxylessGroups } from './groups/proxyless-groups.ts'
import { ResourceGroup } from './groups/resource-group.ts'
import { RouteGroups } from './groups/route-groups.ts'
import { WorkloadGroups } from './groups/workload-groups.ts'

/** How long removed resources that routes may still refer to are kept, in milliseconds. */
const lingerMs = 2000

/** The user of cached values, and the id of a class, that are made before any proxy needs them. */
const ahead = 'ahead of need'

/** Builds and owns the groups. */
export class GroupBuilder implements Making {
  readonly memo: Memo
  readonly sums: KeyedSums
  /** The present snapshot. Reads of it are recorded. */
  readonly snapshot: SnapshotReader
  /** What was read to make groups, classes, and what they share. */
  readonly record: Dependencies<MeshSnapshot>
  readonly #store: GroupStore
  readonly #faults: Faults
  readonly #groups = new Map<string, ClassGroup>()
  /** Groups and classes of which something that was read has changed. */
  readonly #outdated = new Set<ClassGroup>()
  readonly #outdatedClasses = new Set<ServedClass>()
  /** Groups that nothing wants or keeps. */
  readonly #idle = new Set<ClassGroup>()
  /** Groups of which the last attempt to build them failed as a whole. */
  readonly #failed = new Set<ClassGroup>()
  /** Classes with a group in which other hosts are hidden now. */
  readonly #rehidden = new Set<ServedClass>()
  readonly #lingering: Lingering
  /** The record of what was made in advance. */
  readonly #ahead: Product<string>
  readonly #outbound: OutboundGroups
  readonly #listeners: ListenerGroups
  readonly #routes: RouteGroups
  readonly #workloads: WorkloadGroups
  readonly #names: NameTableGroups
  readonly #proxyless: ProxylessGroups
  /** The group that is being built. */
  #building = ''
  #now = 0
  #copies = 0

  constructor(snapshot: MeshSnapshot, groups: GroupStore, faults: Faults, sums: KeyedSums) {
    this.sums = sums
    this.record = new Dependencies(snapshot)
    this.memo = new Memo(this.record)
    this.snapshot = new SnapshotReader(this.record)
    this.#store = groups
    this.#lingering = new Lingering(groups, (typeUrl, resources) => this.#copy(typeUrl, resources))
    this.#ahead = this.record.product(ahead, new Set())
    this.#faults = faults
    this.#outbound = new OutboundGroups(this)
    this.#listeners = new ListenerGroups(this)
    this.#routes = new RouteGroups(this)
    this.#workloads = new WorkloadGroups(this)
    this.#names = new NameTableGroups(this)
    this.#proxyless = new ProxylessGroups(this)
  }

  derived<Value>(name: string, make: () => Value, alike?: (one: Value, other: Value) => boolean): Value {
    return this.record.derived(name, make, alike)
  }

  lastGood(): ReadonlyMap<string, Resource> {
    return this.#store.resources(this.#building)
  }

  valueOf(resource: Resource): Uint8Array {
    return this.#store.valueOf(resource)
  }

  /** The number of route sets in memory. Tests of memory check that it falls when proxies disconnect. */
  get routeSets(): number {
    return this.#routes.kept
  }

  /** The listener conflicts of all views and classes in use, without duplicates. */
  get conflicts(): readonly ListenerConflict[] {
    const found = new Map<string, ListenerConflict>()
    for (const { conflicts } of this.#groups.values())
      for (const conflict of conflicts) found.set(`${conflict.kind}|${conflict.view}|${conflict.key}`, conflict)
    return [...found.values()]
  }

  /** Whether a group failed as a whole when it was last built. */
  get hasFailed(): boolean {
    return this.#failed.size > 0
  }

  /** Builds the groups again that failed as a whole: an error may have passed. */
  retryFailed(): void {
    for (const group of [...this.#failed]) this.#rebuild(group)
  }

  /** The number of recorded questions to the snapshot. Tests of memory check that it falls when proxies disconnect. */
  get questions(): number {
    return this.record.questions
  }

  /** Replaces the snapshot at `now` (monotonic milliseconds). Outdated groups are built by {@link remake}. */
  advance(snapshot: MeshSnapshot, now: number): void {
    this.#now = now
    this.record.advance(snapshot)
  }

  /** The type URL of a group; empty if there is none with this id. */
  typeOf(group: string): string {
    return this.#groups.get(group)?.typeUrl ?? ''
  }

  /** The classes whose list of groups may have changed. */
  get outdatedClasses(): ServedClass[] {
    return [...this.#outdatedClasses]
  }

  /** Builds all outdated groups. Returns the classes for which other hosts are hidden now. */
  remake(): ServedClass[] {
    for (const group of [...this.#outdated]) if (group.state === 'wanted') this.#rebuild(group)
    const rehidden = [...this.#rehidden]
    this.#rehidden.clear()
    return rehidden
  }

  /**
   * Makes the groups of a class for the present snapshot, and returns them by type URL together with the groups that the class keeps after
   * their removal. When proxies have just moved to the class from the class `from`, it also keeps the removed groups of `from`.
   */
  resourcesOf(served: ServedClass, from: ServedClass = served): Record<string, GroupUse[]> {
    const { proxyClass } = served
    served.record ??= this.record.product(served, this.#outdatedClasses)
    const makers = this.record.produce(served.record, () => {
      const { policies, mesh } = this.snapshot
      served.policies = policiesDigest(policiesFor(policies, mesh.rootNamespace, proxyClass))
      return this.#makersFor(proxyClass)
    })
    const uses = makers.map((maker): ClassUse => {
      const group = this.#current(maker)
      // The group that hides hosts in this one stands before it.
      const hide = maker.hiddenBy === undefined ? undefined : this.#groups.get(maker.hiddenBy)?.hides
      return { group, hide: hide ?? nothing }
    })
    this.#use(served, uses, from)
    this.#tellLosses(served)
    const groups: Record<string, GroupUse[]> = {}
    // When several groups contain a name, the first counts: the present groups come before the kept ones.
    for (const { group, hide } of [...uses, ...served.kept]) (groups[group.typeUrl] ??= []).push({ group: group.id, hide })
    return groups
  }

  /** Returns the group of a maker, made for the present snapshot and the given inputs of the maker. */
  #current(maker: GroupMaker): ClassGroup {
    const { id, typeUrl, given } = maker
    let group = this.#groups.get(id)
    if (!group) this.#groups.set(id, (group = new ResourceGroup(id, typeUrl, this.#idle)))
    const before = group.maker
    group.maker = maker
    if (!group.record?.isCurrent || !before || !sameItems(before.given, given)) this.#rebuild(group)
    return group
  }

  /** Sets the groups that a class is made of, and decides which ones it keeps of those it had, or of those that the class `from` has. */
  #use(served: ServedClass, uses: readonly ClassUse[], from: ServedClass): void {
    const groups = new Set(uses.map(({ group }) => group))
    const due = this.#now + lingerMs
    const left = from.uses.flatMap((use) => (lingeringTypes.has(use.group.typeUrl) ? { ...use, due } : []))
    for (const group of groups) group.want(served)
    for (const { group } of served.uses) if (!groups.has(group)) group.leave(served)
    this.#lingering.keep(served, [...left, ...from.kept], uses)
    served.uses = uses
  }

  /** Makes a group of copies of resources, which stays as it is. */
  #copy(typeUrl: string, resources: readonly Resource[]): ClassGroup {
    const group = new ResourceGroup(`lingering|${++this.#copies}`, typeUrl, this.#idle)
    this.#groups.set(group.id, group)
    this.#store.replace(group.id, resources)
    return group
  }

  /** The earliest time at which a kept resource or group is due for removal, in monotonic milliseconds. Undefined when there is none. */
  nextLeaving(): number | undefined {
    const due = [this.#store.nextLeaving(), this.#lingering.next].filter((time) => time !== undefined)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** Removes kept resources and groups that are due by `now`. Returns the classes that kept them. */
  sweep(now: number): ServedClass[] {
    this.#store.sweep(now)
    return this.#lingering.sweep(now)
  }

  /** Removes a class. */
  dropClass(served: ServedClass): void {
    for (const { group } of served.uses) group.leave(served)
    served.uses = nothing
    this.#lingering.forget(served)
    this.#rehidden.delete(served)
    this.#faults.clear(`losses|${served.id}`)
    if (served.record) this.record.forget(served.record)
  }

  /** The makers of the groups of a class: from the class to what makes its resources. */
  #makersFor(proxy: ProxyClass): GroupMaker[] {
    const { isProxyless, type } = proxy.traits
    if (isProxyless) return [...this.#outbound.assignments(proxy), ...this.#proxyless.makersFor(proxy)]
    if (type === 'router') return [...this.#outbound.makersFor(proxy), ...this.#workloads.ofGateway(proxy), ...filterExtensions(proxy)]
    return [
      ...this.#outbound.makersFor(proxy),
      // Inbound listeners come first, so that no service at the workload's address replaces one of them (docs/resources.md, L16).
      ...this.#workloads.ofSidecar(proxy),
      ...this.#listeners.makersFor(proxy),
      ...this.#routes.makersFor(proxy),
      ...this.#names.makersFor(proxy),
      ...filterExtensions(proxy),
    ]
  }

  /**
   * Builds a group. This is the one place where errors are contained: a resource that fails keeps its last good state or is left out, and
   * so does the whole group if building it fails. The faults of what was built are replaced.
   */
  #rebuild(group: ClassGroup): void {
    const { id, typeUrl, maker } = group
    if (!maker) return
    const faults: ResourceFault[] = []
    let part: ReadonlySet<string> | undefined
    this.#building = id
    this.memo.user = id
    group.record ??= this.record.product(group, this.#outdated)
    this.#setFailed(group, false)
    contain(
      () =>
        this.record.produce(group.record as Product<ClassGroup>, () => {
          const built = maker.make()
          part = built.isPart && built.remade ? new Set([...built.remade, id]) : undefined
          const divided = divideOutcomes(built.outcomes, (name) => this.#store.resources(id).get(name))
          const leaveAt = lingeringTypes.has(typeUrl) ? this.#now + lingerMs : undefined
          if (built.isPart) this.#store.update(id, divided.resources, built.gone, leaveAt)
          else this.#store.replace(id, divided.resources, leaveAt)
          built.stored?.()
          group.conflicts = [...(part ? group.conflicts.filter(({ listener }) => !part?.has(listener)) : []), ...divided.conflicts]
          if (built.hide) this.#hide(group, built.hide)
          faults.push(...divided.faults)
        }),
      (reason) => {
        this.#setFailed(group, true)
        // The faults of its resources stay with these.
        part = new Set([id])
        const kept = this.#store.has(id)
        if (!kept) this.#store.replace(id, [])
        const objects = maker.given.flatMap(objectsOf)
        faults.push({ type: 'group', resource: id, objects, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      },
    )
    this.#setFaults(group, faults, part)
  }

  /** Sets the faults of a group, and what rules keep from its proxies: of all its resources, or of a part of them. */
  #setFaults(group: ClassGroup, found: readonly ResourceFault[], part: ReadonlySet<string> | undefined): void {
    const faults = found.filter(({ isLoss }) => !isLoss)
    const losses = found.filter(({ isLoss }) => isLoss)
    if (part) this.#faults.amend(group.id, part, faults)
    else this.#faults.replace(group.id, faults)
    const others = part ? group.losses.filter(({ resource }) => !part.has(resource)) : []
    this.#setLosses(group, [...others, ...losses])
  }

  #setFailed(group: ClassGroup, hasFailed: boolean): void {
    group.hasFailed = hasFailed
    if (hasFailed) this.#failed.add(group)
    else this.#failed.delete(group)
  }

  /** Sets what rules keep from the proxies of a group. */
  #setLosses(group: ClassGroup, losses: readonly ResourceFault[]): void {
    // A class has the losses of its groups, so equal ones are not passed on.
    if (JSON.stringify(losses) === JSON.stringify(group.losses)) return
    group.losses = losses
    for (const served of group.users) this.#tellLosses(served)
  }

  /** Replaces the losses of a class: those of its groups, but for hosts that it has in another form, and none of a class without proxies. */
  #tellLosses({ id, uses }: ServedClass): void {
    if (id === ahead) return
    const losses = uses.flatMap(({ group, hide }) => {
      if (group.losses.length === 0) return []
      const hidden = new Set(hide)
      return group.losses.filter(({ resource }) => !hidden.has(resource))
    })
    this.#faults.replace(`losses|${id}`, losses)
  }

  #hide(group: ClassGroup, hide: readonly string[]): void {
    const before = group.hides
    if (before && sameItems(before, hide)) return
    group.hides = hide
    if (before) for (const served of group.users) this.#rehidden.add(served)
  }

  /** Removes the groups that no class wants or keeps. */
  retain(): void {
    for (const group of this.#idle) {
      const { id, record } = group
      group.end()
      this.#groups.delete(id)
      this.#store.retire(id)
      if (record) this.record.forget(record)
      this.#failed.delete(group)
      this.#faults.clear(id)
      this.memo.release(id)
      for (const maker of [this.#outbound, this.#listeners, this.#routes]) maker.forget(id)
    }
  }

  /** A view of the present snapshot. */
  view(key: ViewKey): View {
    return this.record.derived(`view ${key.id}`, () => buildView(this.snapshot, key))
  }

  /**
   * Makes the resources of an ordinary sidecar's services in advance, so that the first group finds most of them in the cache. Yields the
   * number of bytes made for each service; the caller may stop or continue between services.
   */
  *prepare(proxy: ProxyClass): Generator<number> {
    this.record.forget(this.#ahead)
    this.record.produce(this.#ahead, () => undefined)
    for (const steps of [this.#outbound.prepare(proxy), this.#routes.prepare(proxy)])
      for (let made: number | undefined = 0; made !== undefined; ) {
        this.memo.user = ahead
        this.record.extend(this.#ahead, () => {
          const { value, done } = steps.next()
          made = done ? undefined : value
        })
        if (made !== undefined) yield made
      }
  }

  /**
   * Builds the groups of a class in advance. They stay until the next change of configuration unless a class uses them. Returns the number
   * of bytes of the resources in those that are not in `counted`, and adds them to it.
   */
  prepareGroups(proxy: ProxyClass, counted: Set<string>): number {
    const served = new ServedClass(ahead, proxy)
    this.resourcesOf(served)
    const groups = served.uses.map(({ group }) => group.id)
    this.dropClass(served)
    let bytes = 0
    for (const group of groups) {
      if (counted.has(group)) continue
      counted.add(group)
      for (const { slices } of this.#store.resources(group).values()) for (const { length } of slices) bytes += length
    }
    return bytes
  }
}

const nothing: readonly never[] = []
