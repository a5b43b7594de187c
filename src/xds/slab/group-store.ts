/** Groups of resources that classes share, and the updates that bring writers from one state of a group to the next. */
import type { GroupUpdate, ResourceData } from '../../../protocols/messages/push.ts'
import { append } from '../../model/lists.ts'
import { hostOf } from '../names.ts'
import { type Block, isUsable, type Resource } from './resource.ts'
import type { SlabStore } from './slab-store.ts'
import { addSums, type KeyedSums, type Sum, subtractSums, sumText, zeroSum } from './sums.ts'
import { scanFields } from './wire.ts'

interface Group {
  readonly id: string
  readonly resources: Map<string, Resource>
  /** The keyed sum of all names and versions in the group. */
  sum: Sum
  sequence: number
  /** The changes since the last update; undefined if there are none, which holds for most of the many groups. */
  pending: { readonly changed: Map<string, Resource>; readonly removed: Set<string> } | undefined
  /**
   * Names that are leaving the group, and the monotonic time in milliseconds at which each is removed; undefined while there never was one.
   */
  leaving: Map<string, number> | undefined
  /** Whether the set of leaving names changed since the last update. */
  isLeavingNew: boolean
  /** Names by host; computed on demand and dropped when a name is added or removed. */
  byHost: ReadonlyMap<string, readonly string[]> | undefined
  /** A token that is replaced whenever a name is added or removed. */
  naming: object
  /** Names that another group lacks, with the `naming` tokens of both groups for which this was computed. */
  missing: WeakMap<Group, { readonly own: object; readonly other: object; readonly names: readonly string[] }> | undefined
}

/** The owner of all resource groups. */
export class GroupStore {
  readonly #groups = new Map<string, Group>()
  readonly #slabs: SlabStore
  readonly #sums: KeyedSums
  readonly #touched = new Set<Group>()
  /** Increased with every update of any group, so that no two states have the same number. */
  #sequence: number

  /** `first` is the number before that of the first update. */
  constructor(slabs: SlabStore, sums: KeyedSums, first = 0) {
    this.#slabs = slabs
    this.#sums = sums
    this.#sequence = first
  }

  #numberOf({ name, version }: Resource): Sum {
    return this.#sums.of(`${name}|${version}`)
  }

  has(id: string): boolean {
    return this.#groups.has(id)
  }

  /** Returns the resources of a group by name. */
  resources(id: string): ReadonlyMap<string, Resource> {
    return this.#groups.get(id)?.resources ?? new Map()
  }

  /** Returns the names of the resources of a host in a group. A group has resources of one type only. */
  namesOf(id: string, typeUrl: string, host: string): readonly string[] {
    const group = this.#groups.get(id)
    if (!group) return []
    if (!group.byHost) {
      const found = new Map<string, string[]>()
      for (const name of group.resources.keys()) append(found, hostOf(typeUrl, name), name)
      group.byHost = found
    }
    return group.byHost.get(host) ?? []
  }

  /** Returns the names of group `id` that group `other` lacks. Cached until a name is added to or removed from either group. */
  missingFrom(other: string, id: string): readonly string[] {
    const [group, there] = [this.#groups.get(id), this.#groups.get(other)]
    if (!group) return []
    if (!there) return [...group.resources.keys()]
    const known = group.missing?.get(there)
    if (known?.own === group.naming && known.other === there.naming) return known.names
    const names = [...group.resources.keys()].filter((name) => !there.resources.has(name))
    group.missing ??= new WeakMap()
    group.missing.set(there, { own: group.naming, other: there.naming, names })
    return names
  }

  /** Returns the encoded message of a resource in use, without the `Any` around it. Throws if its bytes were freed. */
  valueOf(resource: Resource): Buffer {
    const element = Buffer.concat(resource.slices.map(({ block, offset, length }) => this.#slabs.read(block).subarray(offset, offset + length)))
    const [any] = scanFields(element)
    const value = [...scanFields(any?.bytes ?? Buffer.alloc(0))].find(({ field }) => field === 2)
    return value?.bytes ?? Buffer.alloc(0)
  }

  /**
   * Sets the resources of a group. Of two with the same name the first is used. A name that is no longer among them is removed at once, or,
   * if `leaveAt` (monotonic milliseconds) is given, stays as leaving until then; a name that was leaving before keeps its time.
   */
  replace(id: string, resources: Iterable<Resource>, leaveAt?: number): void {
    const group = this.#groupOf(id)
    const wanted = new Map<string, Resource>()
    for (const resource of resources) if (!wanted.has(resource.name)) wanted.set(resource.name, resource)
    for (const name of group.resources.keys()) if (!wanted.has(name)) this.#leave(group, name, leaveAt)
    for (const resource of wanted.values()) this.#put(group, resource)
  }

  /** Adds or replaces resources of a group, and removes those that are gone as {@link replace} does. */
  update(id: string, resources: Iterable<Resource>, gone: Iterable<string> = [], leaveAt?: number): void {
    const group = this.#groupOf(id)
    for (const name of gone) this.#leave(group, name, leaveAt)
    for (const resource of resources) this.#put(group, resource)
  }

  #leave(group: Group, name: string, leaveAt: number | undefined): void {
    if (leaveAt === undefined) this.#remove(group, name)
    else if (group.resources.has(name) && !group.leaving?.has(name)) {
      group.leaving ??= new Map()
      group.leaving.set(name, leaveAt)
      this.#leavingChanged(group)
    }
  }

  /** Whether a name is leaving a group. */
  isLeaving(id: string, name: string): boolean {
    return this.#groups.get(id)?.leaving?.has(name) ?? false
  }

  /** Returns the earliest time at which a leaving name is to be removed, in monotonic milliseconds; undefined if no name is leaving. */
  nextLeaving(): number | undefined {
    let next: number | undefined
    for (const { leaving } of this.#groups.values()) for (const due of leaving?.values() ?? []) if (next === undefined || due < next) next = due
    return next
  }

  /** Removes the leaving names whose time has come. */
  sweep(now: number): void {
    for (const group of this.#groups.values())
      for (const [name, due] of group.leaving ?? []) {
        if (due <= now) this.#remove(group, name)
      }
  }

  /** Drops a group that no class uses any more. */
  retire(id: string): void {
    const group = this.#groups.get(id)
    if (!group) return
    for (const resource of group.resources.values()) this.#slabs.release(resource)
    this.#groups.delete(id)
    this.#touched.delete(group)
  }

  /** Returns the ids of all groups. */
  ids(): IterableIterator<string> {
    return this.#groups.keys()
  }

  /** Places new blocks in shared memory and returns the changes of the groups since the last call. */
  takeUpdates(): GroupUpdate[] {
    const moved = this.#slabs.place()
    if (moved.size > 0) this.#touchMoved(moved)
    const updates: GroupUpdate[] = []
    for (const group of this.#touched) {
      const base = group.sequence
      group.sequence = ++this.#sequence
      updates.push({
        group: group.id,
        base,
        sequence: group.sequence,
        version: sumText(group.sum),
        changed: Array.from(group.pending?.changed.values() ?? [], resourceData),
        removed: [...(group.pending?.removed ?? [])],
        ...(group.isLeavingNew ? { leaving: [...(group.leaving?.keys() ?? [])] } : {}),
      })
      group.isLeavingNew = false
      group.pending = undefined
    }
    this.#touched.clear()
    return updates
  }

  /** Returns an update that replaces a whole group, for a writer that does not have it. Call after {@link takeUpdates}. */
  wholeUpdate(id: string): GroupUpdate | undefined {
    const group = this.#groups.get(id)
    return (
      group && {
        group: id,
        base: 0,
        sequence: group.sequence,
        version: sumText(group.sum),
        changed: Array.from(group.resources.values(), resourceData),
        removed: [],
        leaving: [...(group.leaving?.keys() ?? [])],
      }
    )
  }

  #groupOf(id: string): Group {
    const known = this.#groups.get(id)
    if (known) return known
    const group: Group = {
      id,
      resources: new Map(),
      sum: zeroSum,
      sequence: 0,
      pending: undefined,
      leaving: undefined,
      isLeavingNew: false,
      byHost: undefined,
      naming: {},
      missing: undefined,
    }
    this.#groups.set(id, group)
    this.#touched.add(group)
    return group
  }

  #leavingChanged(group: Group): void {
    group.isLeavingNew = true
    this.#touched.add(group)
  }

  /** Returns the changes that the next update of a group contains. */
  #pending(group: Group): NonNullable<Group['pending']> {
    this.#touched.add(group)
    return (group.pending ??= { changed: new Map(), removed: new Set() })
  }

  #put(group: Group, resource: Resource): void {
    if (group.leaving?.delete(resource.name)) this.#leavingChanged(group)
    const before = group.resources.get(resource.name)
    if (before === resource) return
    if (before?.version === resource.version) return
    if (!isUsable(resource)) throw new Error(`the bytes of ${resource.name} are gone`)
    this.#slabs.retain(resource)
    if (!before) renamed(group)
    if (before) {
      this.#slabs.release(before)
      group.sum = subtractSums(group.sum, this.#numberOf(before))
    }
    group.sum = addSums(group.sum, this.#numberOf(resource))
    group.resources.set(resource.name, resource)
    const { changed, removed } = this.#pending(group)
    changed.set(resource.name, resource)
    removed.delete(resource.name)
  }

  #remove(group: Group, name: string): void {
    if (group.leaving?.delete(name)) this.#leavingChanged(group)
    const before = group.resources.get(name)
    if (!before) return
    this.#slabs.release(before)
    group.sum = subtractSums(group.sum, this.#numberOf(before))
    group.resources.delete(name)
    renamed(group)
    const { changed, removed } = this.#pending(group)
    changed.delete(name)
    removed.add(name)
  }

  /** Adds resources whose bytes moved to the next update. Their versions stay the same, so nothing is sent to proxies. */
  #touchMoved(moved: ReadonlySet<Block>): void {
    for (const group of this.#groups.values()) {
      for (const resource of group.resources.values()) {
        if (!resource.slices.some((slice) => moved.has(slice.block))) continue
        this.#pending(group).changed.set(resource.name, resource)
      }
    }
  }
}

function resourceData(resource: Resource): ResourceData {
  const slices: number[] = []
  for (const { block, offset, length } of resource.slices) slices.push(block.slab, block.offset + offset, length)
  return { name: resource.name, version: resource.version, slices }
}

/** Drops what was derived from the set of names. */
function renamed(group: Group): void {
  group.byHost = undefined
  group.naming = {}
}
