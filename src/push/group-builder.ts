/**
 * Builds the resource groups of the classes, for one snapshot after another. The reads of each group are recorded, and a group is built
 * again when something that it read, or one of its given inputs, has changed. Values made from unchanged inputs are reused.
 */

import { TypedExtensionConfigSchema } from '../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import type { GroupUse } from '../../protocols/messages/push.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import { sameItems } from '../model/lists.ts'
import { policiesDigest, policiesFor } from '../snapshot/policies.ts'
import { type Changes, isOnlyEndpoints, type MeshSnapshot } from '../snapshot/snapshot.ts'
import { buildView, type View, type ViewKey } from '../snapshot/view.ts'
import { divideOutcomes, type ListenerConflict, makeAll } from '../xds/draft.ts'
import { extensionConfigs } from '../xds/envoy-filter/extensions.ts'
import type { GroupStore } from '../xds/slab/group-store.ts'
import type { Resource } from '../xds/slab/resource.ts'
import type { KeyedSums } from '../xds/slab/sums.ts'
import type { ProxyClass } from '../xds/traits.ts'
import { endpointType, extensionConfigType } from '../xds/type-urls.ts'
import { Dependencies } from './dependencies/dependencies.ts'
import { Memo } from './dependencies/memo.ts'
import { SnapshotReader } from './dependencies/snapshot-reader.ts'
import { Lingering, lingeringTypes, type Uses } from './groups/lingering.ts'
import { ListenerGroups } from './groups/listener-groups.ts'
import { type GroupSpec, type Making, objectsOf, patched } from './groups/making.ts'
import { NameTableGroups } from './groups/name-table-groups.ts'
import { OutboundGroups } from './groups/outbound-groups.ts'
import { ProxylessGroups } from './groups/proxyless-groups.ts'
import { RouteGroups } from './groups/route-groups.ts'
import { WorkloadGroups } from './groups/workload-groups.ts'

/** How long removed resources that routes may still refer to are kept, in milliseconds. */
const lingerMs = 2000

/** The user of cached values that are made before any proxy needs them. */
const ahead = 'ahead of need'

/** Builds and owns the groups. */
export class GroupBuilder implements Making {
  readonly memo: Memo
  readonly sums: KeyedSums
  /** The present snapshot. Reads of it are recorded. */
  readonly snapshot: SnapshotReader
  readonly #record: Dependencies<MeshSnapshot>
  readonly #groups: GroupStore
  readonly #faults: Faults
  readonly #specs = new Map<string, GroupSpec>()
  /** By group the hosts that it hides in the shared group. */
  readonly #hidden = new Map<string, readonly string[]>()
  /** Groups by class, and classes by group. */
  readonly #groupsOf = new Map<string, ReadonlySet<string>>()
  readonly #users = new Map<string, Set<string>>()
  /** By class its groups by type URL. The groups that it keeps after their removal are in `#lingering`. */
  readonly #usesOf = new Map<string, Uses>()
  readonly #lingering: Lingering
  /** Digests of the policies of classes. */
  readonly #policiesOf = new Map<string, string | undefined>()
  /** Groups without classes. */
  readonly #unused = new Set<string>()
  /** Classes with a group in which other hosts are hidden now. */
  readonly #rehidden = new Set<string>()
  /** What rules keep from the proxies of a group, by group. */
  readonly #losses = new Map<string, readonly ResourceFault[]>()
  readonly #outbound: OutboundGroups
  readonly #listeners: ListenerGroups
  readonly #routes: RouteGroups
  readonly #workloads: WorkloadGroups
  readonly #names: NameTableGroups
  readonly #proxyless: ProxylessGroups
  /** The group that is being built. */
  #building = ''
  #now = 0
  /** Groups of which the last attempt to build them failed as a whole. */
  readonly #failed = new Set<string>()
  /** Conflicts between listeners by group. */
  readonly #conflicts = new Map<string, readonly ListenerConflict[]>()

  constructor(snapshot: MeshSnapshot, groups: GroupStore, faults: Faults, sums: KeyedSums) {
    this.sums = sums
    this.#record = new Dependencies(snapshot)
    this.memo = new Memo(this.#record)
    this.snapshot = new SnapshotReader(this.#record)
    this.#groups = groups
    this.#lingering = new Lingering(groups)
    this.#faults = faults
    this.#outbound = new OutboundGroups(this)
    this.#listeners = new ListenerGroups(this)
    this.#routes = new RouteGroups(this)
    this.#workloads = new WorkloadGroups(this)
    this.#names = new NameTableGroups(this)
    this.#proxyless = new ProxylessGroups(this)
  }

  get record(): Pick<Dependencies<never>, 'collection'> {
    return this.#record
  }

  derived<Value>(name: string, make: () => Value, alike?: (one: Value, other: Value) => boolean): Value {
    return this.#record.derived(name, make, alike)
  }

  lastGood(): ReadonlyMap<string, Resource> {
    return this.#groups.resources(this.#building)
  }

  valueOf(resource: Resource): Uint8Array {
    return this.#groups.valueOf(resource)
  }

  /** The number of route sets in memory. Tests of memory check that it falls when proxies disconnect. */
  get routeSets(): number {
    return this.#routes.kept
  }

  /** The listener conflicts of all views and classes in use, without duplicates. */
  get conflicts(): readonly ListenerConflict[] {
    const found = new Map<string, ListenerConflict>()
    for (const conflicts of this.#conflicts.values())
      for (const conflict of conflicts) found.set(`${conflict.kind}|${conflict.view}|${conflict.key}`, conflict)
    return [...found.values()]
  }

  /** Whether a group failed as a whole when it was last built. */
  get hasFailed(): boolean {
    return this.#failed.size > 0
  }

  /** Builds the groups again that failed as a whole: an error may have passed. */
  retryFailed(): void {
    for (const id of [...this.#failed]) {
      const spec = this.#specs.get(id)
      if (spec) this.#rebuild(spec)
    }
  }

  /** The number of recorded questions to the snapshot. Tests of memory check that it falls when proxies disconnect. */
  get questions(): number {
    return this.#record.questions
  }

  /**
   * Replaces the snapshot at `now` (monotonic milliseconds). Load assignments are updated at once; other outdated groups are built by
   * {@link remake}.
   */
  advance(snapshot: MeshSnapshot, changes: Changes, now: number): void {
    this.#now = now
    if (isOnlyEndpoints(changes)) this.#record.replace(snapshot)
    else this.#record.advance(snapshot)
    for (const host of changes.hosts) this.#refreshEndpoints(host)
  }

  /** The classes whose list of groups may have changed. */
  get outdatedClasses(): string[] {
    return [...this.#record.outdated].flatMap((name) => (name.startsWith(classPrefix) ? [name.slice(classPrefix.length)] : []))
  }

  /** Builds all outdated groups. Returns the classes for which other hosts are hidden now. */
  remake(): string[] {
    for (const id of [...this.#record.outdated]) {
      const spec = this.#specs.get(id)
      if (spec && (this.#users.get(id)?.size ?? 0) > 0) this.#rebuild(spec)
    }
    const rehidden = [...this.#rehidden]
    this.#rehidden.clear()
    return rehidden
  }

  /**
   * Returns the groups of a class by type URL, all built for the present snapshot, together with the groups it keeps after their removal.
   * When proxies have just moved to the class from the class `from`, `classId` is the id of a transitional class, which also keeps the
   * removed groups of `from`.
   */
  groupsFor(proxy: ProxyClass, classId = proxy.id, from = classId): Record<string, GroupUse[]> {
    let specs: readonly GroupSpec[] = []
    this.#record.produce(`${classPrefix}${classId}`, () => {
      specs = this.#specsOf(proxy)
      const { policies, mesh } = this.snapshot
      this.#policiesOf.set(classId, policiesDigest(policiesFor(policies, mesh.rootNamespace, proxy)))
    })
    const groups: Record<string, GroupUse[]> = {}
    for (const spec of specs) {
      const { id, typeUrl, hiddenBy, given } = spec
      const before = this.#specs.get(id)
      this.#specs.set(id, spec)
      if (!this.#record.isCurrent(id) || !before || !sameItems(before.given, given)) this.#rebuild(spec)
      const use = { group: id, hide: (hiddenBy !== undefined && this.#hidden.get(hiddenBy)) || nothing }
      const uses = groups[typeUrl]
      if (!uses) groups[typeUrl] = [use]
      else uses.push(use)
    }
    this.#use(classId, new Set(specs.map(({ id }) => id)))
    const had = Object.entries(this.#usesOf.get(from) ?? {}).filter(([typeUrl]) => lingeringTypes.has(typeUrl))
    const left = had.flatMap(([typeUrl, uses]) => uses.map((use) => ({ typeUrl, use, due: this.#now + lingerMs })))
    this.#lingering.keep(classId, [...left, ...this.#lingering.of(from)], groups)
    this.#usesOf.set(classId, { ...groups })
    this.#tellLosses(classId)
    // When several groups contain a name, the first counts: the present groups come before the kept ones.
    for (const { typeUrl, use } of this.#lingering.of(classId)) groups[typeUrl] = [...(groups[typeUrl] ?? []), use]
    return groups
  }

  /** A digest of the policies that the groups of a class were made with. Undefined when there are none. */
  policiesOf(classId: string): string | undefined {
    return this.#policiesOf.get(classId)
  }

  /** Whether a class keeps groups after their removal. */
  isLingering(classId: string): boolean {
    return this.#lingering.of(classId).length > 0
  }

  /** The groups that a class keeps after their removal. */
  keptGroups(classId: string): Set<string> {
    return new Set(this.#lingering.of(classId).map(({ use }) => use.group))
  }

  /** The earliest time at which a kept resource or group is due for removal, in monotonic milliseconds. Undefined when there is none. */
  nextLeaving(): number | undefined {
    const due = [this.#groups.nextLeaving(), this.#lingering.next].filter((time) => time !== undefined)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** Removes kept resources and groups that are due by `now`. Returns the classes that kept them. */
  sweep(now: number): string[] {
    this.#groups.sweep(now)
    return this.#lingering.sweep(now)
  }

  /** Removes a class. */
  dropClass(classId: string): void {
    this.#use(classId, new Set())
    this.#groupsOf.delete(classId)
    this.#usesOf.delete(classId)
    this.#policiesOf.delete(classId)
    this.#lingering.forget(classId)
    this.#faults.clear(`losses|${classId}`)
    this.#record.forget(`${classPrefix}${classId}`)
  }

  #use(classId: string, groups: ReadonlySet<string>): void {
    for (const id of this.#groupsOf.get(classId) ?? []) {
      if (groups.has(id)) continue
      const users = this.#users.get(id)
      users?.delete(classId)
      if (users?.size === 0) this.#unused.add(id)
    }
    for (const id of groups) {
      const users = this.#users.get(id)
      if (users) users.add(classId)
      else this.#users.set(id, new Set([classId]))
    }
    this.#groupsOf.set(classId, groups)
  }

  #specsOf(proxy: ProxyClass): GroupSpec[] {
    if (proxy.traits.isProxyless)
      return [...this.#outbound.specs(proxy).filter(({ typeUrl }) => typeUrl === endpointType), ...this.#proxyless.specs(proxy)]
    // Inbound listeners come first, so that no service at the workload's address replaces one of them (docs/resources.md, L16).
    const own =
      proxy.traits.type === 'router'
        ? this.#workloads.gateway(proxy)
        : [...this.#workloads.inbound(proxy), ...this.#listeners.specs(proxy), ...this.#routes.specs(proxy), ...this.#names.specs(proxy)]
    return [...this.#outbound.specs(proxy), ...own, ...extensions(proxy)]
  }

  /**
   * Builds a group. This is the one place where errors are contained: a resource that fails keeps its last good state or is left out, and
   * so does the whole group if building it fails. The faults of the group are replaced.
   */
  #rebuild({ id, typeUrl, build, given }: GroupSpec): void {
    const faults: ResourceFault[] = []
    this.#building = id
    this.memo.user = id
    this.#failed.delete(id)
    contain(
      () => {
        this.#record.produce(id, () => {
          const built = build()
          const divided = divideOutcomes(built.outcomes, (name) => this.#groups.resources(id).get(name))
          if (built.isPart) this.#groups.update(id, divided.resources)
          else this.#groups.replace(id, divided.resources, lingeringTypes.has(typeUrl) ? this.#now + lingerMs : undefined)
          built.stored?.()
          this.#conflicts.set(id, divided.conflicts)
          if (built.hide) this.#hide(id, built.hide)
          faults.push(...divided.faults)
        })
      },
      (reason) => {
        this.#failed.add(id)
        const kept = this.#groups.has(id)
        if (!kept) this.#groups.replace(id, [])
        const objects = given.flatMap(objectsOf)
        faults.push({ type: 'group', resource: id, objects, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      },
    )
    this.#faults.replace(
      id,
      faults.filter(({ isLoss }) => !isLoss),
    )
    this.#setLosses(
      id,
      faults.filter(({ isLoss }) => isLoss),
    )
  }

  /** Sets what rules keep from the proxies of a group. */
  #setLosses(id: string, losses: readonly ResourceFault[]): void {
    // A class has the losses of its groups, so equal ones are not passed on.
    if (JSON.stringify(losses) === JSON.stringify(this.#losses.get(id) ?? [])) return
    if (losses.length > 0) this.#losses.set(id, losses)
    else this.#losses.delete(id)
    for (const classId of this.#users.get(id) ?? []) this.#tellLosses(classId)
  }

  /** Replaces the losses of a class: those of its groups, but for hosts that it has in another form, and none of a class without proxies. */
  #tellLosses(classId: string): void {
    if (classId === ahead) return
    const uses = Object.values(this.#usesOf.get(classId) ?? {}).flat()
    const losses = uses.flatMap(({ group, hide }) => {
      const found = this.#losses.get(group)
      if (!found) return []
      const hidden = new Set(hide)
      return found.filter(({ resource }) => !hidden.has(resource))
    })
    this.#faults.replace(`losses|${classId}`, losses)
  }

  #hide(id: string, hide: readonly string[]): void {
    const before = this.#hidden.get(id)
    if (before && sameItems(before, hide)) return
    this.#hidden.set(id, hide)
    if (before) for (const classId of this.#users.get(id) ?? []) this.#rehidden.add(classId)
  }

  /** Removes groups that no class uses or keeps. */
  retain(): void {
    if (this.#unused.size === 0) return
    const kept = this.#lingering.groups
    for (const id of this.#unused) {
      if (kept.has(id)) continue
      this.#unused.delete(id)
      if ((this.#users.get(id)?.size ?? 0) > 0) continue
      this.#users.delete(id)
      this.#groups.retire(id)
      this.#specs.delete(id)
      this.#hidden.delete(id)
      this.#record.forget(id)
      this.#conflicts.delete(id)
      this.#losses.delete(id)
      this.#failed.delete(id)
      this.#faults.clear(id)
      this.memo.release(id)
      for (const maker of [this.#outbound, this.#routes]) maker.forget(id)
    }
  }

  /** A view of the present snapshot. */
  view(key: ViewKey): View {
    return this.#record.derived(`view ${key.id}`, () => buildView(this.snapshot, key))
  }

  /**
   * Makes the resources of an ordinary sidecar's services in advance, so that the first group finds most of them in the cache. Yields the
   * number of bytes made for each service; the caller may stop or continue between services.
   */
  *prepare(proxy: ProxyClass): Generator<number> {
    this.#record.forget(ahead)
    this.#record.produce(ahead, () => undefined)
    for (const steps of [this.#outbound.prepare(proxy), this.#routes.prepare(proxy)])
      for (let made: number | undefined = 0; made !== undefined; ) {
        this.memo.user = ahead
        this.#record.extend(ahead, () => {
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
    const uses = Object.values(this.groupsFor(proxy, ahead)).flat()
    this.dropClass(ahead)
    let bytes = 0
    for (const { group } of uses) {
      if (counted.has(group)) continue
      counted.add(group)
      for (const { slices } of this.#groups.resources(group).values()) for (const { length } of slices) bytes += length
    }
    return bytes
  }

  /**
   * The fast path of an endpoint change: replaces only the load assignments of this host, in every group that contains them and is not
   * outdated.
   */
  #refreshEndpoints(host: string): void {
    for (const id of this.#outbound.endpointGroups(host)) {
      if (!this.#record.isCurrent(id)) continue
      const remade = new Set<string>([host])
      const faults: ResourceFault[] = []
      contain(
        () => {
          this.memo.user = id
          this.#record.remake(id, host, () => {
            const divided = divideOutcomes(this.#outbound.endpointsOf(host, id), (name) => this.#groups.resources(id).get(name))
            this.#groups.update(id, divided.resources)
            for (const { name } of divided.resources) remade.add(name)
            faults.push(...divided.faults)
          })
        },
        (reason) => faults.push({ type: 'eds', resource: host, objects: [], reason, consequence: consequences.kept }),
      )
      for (const { resource } of faults) remade.add(resource)
      this.#faults.amend(
        id,
        remade,
        faults.filter(({ isLoss }) => !isLoss),
      )
      const others = (this.#losses.get(id) ?? []).filter(({ resource }) => !remade.has(resource))
      this.#setLosses(id, [...others, ...faults.filter(({ isLoss }) => isLoss)])
    }
  }
}

/** The prefix of recorded products that are classes. All other products are groups. */
const classPrefix = 'class '
const nothing: readonly string[] = []

function extensions({ traits }: ProxyClass): GroupSpec[] {
  if (traits.filters.length === 0) return []
  const build = () => ({
    outcomes: patched(traits, 'extensions', (context) => makeAll(TypedExtensionConfigSchema, 'ecds', extensionConfigs(context))),
  })
  return [{ id: `extensions|${traits.filterKey}`, given: traits.filters, typeUrl: extensionConfigType, build }]
}
