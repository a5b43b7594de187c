/** The configuration as a writer has it: slabs, the current resource groups, and the groups of each class. */
import type { GroupUse, Manifest, PushContent, ResourceData } from '../../../protocols/messages/push.ts'
import type { KeyedSums } from '../slab/sums.ts'
import { pushOrder } from '../type-urls.ts'
import { type Entry, entryOf, SliceEntry } from './entry.ts'
import { Group, type GroupParts, type HiddenHosts, noneHidden } from './group.ts'
import { TypeState } from './type-state.ts'

/** The part of a push that the catalog applies. The assignment of connections to classes is applied elsewhere. */
type Push = Omit<PushContent, 'assignments'>

/** An entry for a group id: the group and the classes whose manifests name it. Exists as long as the group or one of these classes does. */
interface Slot {
  readonly id: string
  /** Undefined before the group arrives and after it is retired: classes that name it then get nothing from it. */
  group: Group | undefined
  readonly classes: Set<string>
}

/** The use of a group by a class. */
interface Use {
  readonly slot: Slot
  readonly hidden: HiddenHosts
}

/** The configuration of a writer. */
export class Catalog {
  readonly #slabs = new Map<number, Buffer>()
  readonly #slots = new Map<string, Slot>()
  /** Digests of policies by class. A class without policies has none. */
  readonly #policies = new Map<string, string>()
  /** Uses of groups by class, then by type URL. The inner index is a Map because clients choose the type URLs that are looked up. */
  readonly #classes = new Map<string, ReadonlyMap<string, readonly Use[]>>()
  /** Classes that the last whole push did not contain and that had members then: the push queue does not know them. */
  readonly #orphans = new Set<string>()
  /** Type states by class. A state stays the same object until a push changes it. */
  readonly #states = new Map<string, Map<string, TypeState>>()
  /** Interned sets of hidden hosts: classes of one namespace, and the types of one class, hide the same hosts. */
  readonly #hidden = new Map<string, WeakRef<HiddenHosts>>()
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (!this.#hidden.get(key)?.deref()) this.#hidden.delete(key)
  })
  readonly #listeners: ((group: Group) => void)[] = []
  /** Dependencies that its groups share, also for groups outside the catalog (secrets). */
  readonly parts: GroupParts
  /**
   * Ids of groups of which an update was rejected because its base was not the current state. Such a group stays unchanged until an update
   * replaces it as a whole.
   */
  readonly outOfSyncGroups = new Set<string>()

  /** `sums` must use the same key as the push queue. */
  constructor(sums: KeyedSums) {
    let last = 0
    this.parts = { sums, serial: () => ++last }
  }

  /** Registers a listener that is called for every group whose bytes changed or that was retired. */
  onPatched(listen: (group: Group) => void): void {
    this.#listeners.push(listen)
  }

  #patched(group: Group): void {
    for (const listen of this.#listeners) listen(group)
  }

  /**
   * Applies a push. Returns the ids of groups whose content changed. A whole push replaces everything except the classes for which
   * `hasMembers` returns true, and their groups: these are dropped with their last members.
   */
  apply(push: Push, hasMembers: (classId: string) => boolean = () => false): Set<string> {
    if (push.whole) {
      // A new push queue numbers slabs from the start. Existing resources keep references to the bytes that they use.
      this.#slabs.clear()
      this.outOfSyncGroups.clear()
    }
    for (const slab of push.slabs) this.#slabs.set(slab.id, Buffer.from(slab.bytes))
    const changed = new Set<string>()
    for (const update of push.groups) {
      const slot = this.#slot(update.group)
      if (update.base !== 0 && update.base !== slot.group?.sequence) {
        this.outOfSyncGroups.add(update.group)
        this.#dropIfUnused(slot)
        continue
      }
      this.outOfSyncGroups.delete(update.group)
      if (!slot.group) this.#dropStates(slot)
      slot.group ??= new Group(slot.id, this.parts)
      if (slot.group.apply(update, (data) => this.#entryOf(data))) {
        changed.add(slot.id)
        this.#dropStates(slot)
      }
      this.#patched(slot.group)
    }
    for (const manifest of push.manifests) this.#setClass(manifest)
    for (const id of this.#orphans) if (!hasMembers(id)) this.#dropOrphan(id)
    for (const id of push.whole ? this.#classesNotIn(push, hasMembers) : push.retiredClasses) this.#deleteClass(id)
    for (const id of push.whole ? this.#groupsNotIn(push) : push.retiredGroups) this.#retire(id)
    for (const id of push.retiredSlabs) this.#slabs.delete(id)
    return changed
  }

  #slot(id: string): Slot {
    let slot = this.#slots.get(id)
    if (!slot) this.#slots.set(id, (slot = { id, group: undefined, classes: new Set() }))
    return slot
  }

  #dropIfUnused(slot: Slot): void {
    if (!slot.group && slot.classes.size === 0) this.#slots.delete(slot.id)
  }

  #retire(id: string): void {
    this.outOfSyncGroups.delete(id)
    const slot = this.#slots.get(id)
    if (!slot?.group) return
    // Orphaned classes keep their groups until their last member is gone.
    for (const classId of slot.classes) if (this.#orphans.has(classId)) return
    this.#patched(slot.group)
    slot.group = undefined
    this.#dropStates(slot)
    this.#dropIfUnused(slot)
  }

  #setClass({ classId, groups, policies }: Manifest): void {
    if (policies === undefined) this.#policies.delete(classId)
    else this.#policies.set(classId, policies)
    const before = this.#classes.get(classId)
    const use = ({ group, hide }: GroupUse): Use => ({ slot: this.#slot(group), hidden: this.#hiddenHosts(hide) })
    const uses = new Map(Object.entries(groups).map(([typeUrl, list]) => [typeUrl, list.map(use)]))
    this.#classes.set(classId, uses)
    this.#orphans.delete(classId)
    for (const list of uses.values()) for (const { slot } of list) slot.classes.add(classId)
    this.#leave(classId, before, uses)
    this.#states.delete(classId)
  }

  #deleteClass(classId: string): void {
    this.#leave(classId, this.#classes.get(classId), new Map())
    this.#classes.delete(classId)
    this.#orphans.delete(classId)
    this.#policies.delete(classId)
    this.#states.delete(classId)
  }

  #dropOrphan(classId: string): void {
    const slots = [...(this.#classes.get(classId)?.values() ?? [])].flatMap((uses) => uses.map(({ slot }) => slot))
    this.#deleteClass(classId)
    for (const { id, classes } of slots) if (classes.size === 0) this.#retire(id)
  }

  /** Returns a digest of the policies of a class; empty for none. */
  policiesOf(classId: string): string {
    return this.#policies.get(classId) ?? ''
  }

  /** Removes a class from the slots of the groups that it used before and does not use any more. */
  #leave(classId: string, before: ReadonlyMap<string, readonly Use[]> | undefined, after: ReadonlyMap<string, readonly Use[]>): void {
    if (!before) return
    const kept = new Set([...after.values()].flatMap((uses) => uses.map(({ slot }) => slot)))
    for (const uses of before.values())
      for (const { slot } of uses) {
        if (kept.has(slot)) continue
        slot.classes.delete(classId)
        this.#dropIfUnused(slot)
      }
  }

  /** Returns the interned set of these hosts. The set stays interned while it is in use. */
  #hiddenHosts(hide: readonly string[]): HiddenHosts {
    // The empty string stands for resources that belong to no host; these are never hidden.
    const hosts = hide.filter((host) => host !== '')
    if (hosts.length === 0) return noneHidden
    const key = hosts.join('\n')
    const known = this.#hidden.get(key)?.deref()
    if (known) return known
    const hidden: HiddenHosts = new Set(hosts)
    this.#hidden.set(key, new WeakRef(hidden))
    this.#unused.register(hidden, key)
    return hidden
  }

  #classesNotIn({ manifests }: Push, hasMembers: (classId: string) => boolean): string[] {
    const named = new Set(manifests.map(({ classId }) => classId))
    const others = [...this.#classes.keys()].filter((id) => !named.has(id))
    for (const id of others) this.#orphans.add(id)
    return others.filter((id) => !hasMembers(id))
  }

  #groupsNotIn({ groups }: Push): string[] {
    const named = new Set(groups.map(({ group }) => group))
    return [...this.#slots.values()].filter(({ id, classes }) => !named.has(id) && classes.size === 0).map(({ id }) => id)
  }

  /** Returns the state of a type for a class. */
  typeState(classId: string, typeUrl: string): TypeState {
    const known = this.#states.get(classId)?.get(typeUrl)
    if (known) return known
    const uses = this.#classes.get(classId)?.get(typeUrl)
    if (!uses) return nothing.get(typeUrl) ?? nothingElse
    const present = uses.flatMap(({ slot, hidden }) => slot.group?.visible(typeUrl, hidden) ?? [])
    const state = new TypeState(typeUrl, present)
    const states = this.#states.get(classId)
    if (states) states.set(typeUrl, state)
    else this.#states.set(classId, new Map([[typeUrl, state]]))
    return state
  }

  /** Drops the states of the classes that use a group; they are built again on demand. */
  #dropStates({ id, classes }: Slot): void {
    for (const classId of classes) {
      const states = this.#states.get(classId)
      for (const [typeUrl, uses] of (states && this.#classes.get(classId)) ?? []) if (uses.some(({ slot }) => slot.id === id)) states?.delete(typeUrl)
    }
  }

  /** Returns the classes that use one of these groups. */
  classesOf(groups: Iterable<string>): Set<string> {
    const found = new Set<string>()
    for (const id of groups) for (const classId of this.#slots.get(id)?.classes ?? []) found.add(classId)
    return found
  }

  #entryOf(data: ResourceData): Entry {
    const { slices } = data
    const place = (at: number) => ({
      slab: this.#slabOf(data, slices[at] as number),
      offset: slices[at + 1] as number,
      length: slices[at + 2] as number,
    })
    if (slices.length === 3) {
      const { slab, offset, length } = place(0)
      return new SliceEntry(data, slab, offset, length)
    }
    const chunks: Buffer[] = []
    for (let at = 0; at < slices.length; at += 3) {
      const { slab, offset, length } = place(at)
      chunks.push(slab.subarray(offset, offset + length))
    }
    return entryOf(data, chunks)
  }

  #slabOf({ name }: ResourceData, id: number): Buffer {
    const slab = this.#slabs.get(id)
    if (!slab) throw new Error(`resource ${name} refers to slab ${id}, which is not there`)
    return slab
  }
}

/** Empty states of a class without resources: one for each known type, and one for all unknown types. */
const nothing: ReadonlyMap<string, TypeState> = new Map(pushOrder.map((typeUrl) => [typeUrl, new TypeState(typeUrl, [])]))
const nothingElse = new TypeState('', [])
