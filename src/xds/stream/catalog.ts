/** What a writer knows of the configuration: slabs, groups of resources as they are now, and the groups of each class. */
import type { GroupUse, Manifest, PushContent, ResourceData } from '../../../protocols/messages/push.ts'
import type { KeyedSums } from '../slab/sums.ts'
import { pushOrder } from '../type-urls.ts'
import { type Entry, entryOf, SliceEntry } from './entry.ts'
import { Group, type GroupParts, type HiddenHosts, noneHidden } from './group.ts'
import { TypeState } from './type-state.ts'

/** What a push brings to the catalog: which connection is of which class is not its business. */
type Push = Omit<PushContent, 'assignments'>

/** A place for a group, and the classes whose manifests name it. It is there as long as the group or one of them is. */
interface Slot {
  readonly id: string
  /** Undefined when it is not there (yet, or any more): classes that name it have nothing of it. */
  group: Group | undefined
  readonly classes: Set<string>
}

/** A group as a class uses it. */
interface Use {
  readonly slot: Slot
  readonly hidden: HiddenHosts
}

/** All a writer knows. */
export class Catalog {
  readonly #slabs = new Map<number, Buffer>()
  readonly #slots = new Map<string, Slot>()
  /** Digests of the policies of classes that have some. */
  readonly #policies = new Map<string, string>()
  /** Uses of groups by type by class. Clients choose the types that are looked for. */
  readonly #classes = new Map<string, ReadonlyMap<string, readonly Use[]>>()
  /** Classes that were left out of the last whole push and had members then: who sent it does not know them. */
  readonly #orphans = new Set<string>()
  /** States of types by class; one stays the same object until a push changes it. */
  readonly #states = new Map<string, Map<string, TypeState>>()
  /** Lists of hidden hosts in use. Classes of one namespace, and the types of one class, hide the same. */
  readonly #hidden = new Map<string, WeakRef<HiddenHosts>>()
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (!this.#hidden.get(key)?.deref()) this.#hidden.delete(key)
  })
  readonly #listeners: ((group: Group) => void)[] = []
  /** What its groups share, for groups beside it. */
  readonly parts: GroupParts
  /** Groups of which a patch was refused, since it belongs to another state than theirs: they stay as they were until they come as a whole. */
  readonly misfits = new Set<string>()

  /** `sums` are made with the key of the push queue. */
  constructor(sums: KeyedSums) {
    let last = 0
    this.parts = { sums, serial: () => ++last }
  }

  /** `listen` hears of every group whose bytes are others now, or that is gone. */
  onPatched(listen: (group: Group) => void): void {
    this.#listeners.push(listen)
  }

  #patched(group: Group): void {
    for (const listen of this.#listeners) listen(group)
  }

  /**
   * Takes over a push. Returns the ids of groups whose content changed. A whole push replaces all there was, except the classes
   * that `hasMembers` still names, with their groups: these go with their last members.
   */
  apply(push: Push, hasMembers: (classId: string) => boolean = () => false): Set<string> {
    if (push.whole) {
      // A new push queue numbers slabs anew. Resources keep the bytes that they use.
      this.#slabs.clear()
      this.misfits.clear()
    }
    for (const slab of push.slabs) this.#slabs.set(slab.id, Buffer.from(slab.bytes))
    const changed = new Set<string>()
    for (const patch of push.groups) {
      const slot = this.#slot(patch.group)
      if (patch.base !== 0 && patch.base !== slot.group?.sequence) {
        this.misfits.add(patch.group)
        this.#dropIfUnused(slot)
        continue
      }
      this.misfits.delete(patch.group)
      if (!slot.group) this.#dropStates(slot)
      slot.group ??= new Group(slot.id, this.parts)
      if (slot.group.apply(patch, (data) => this.#entryOf(data))) {
        changed.add(slot.id)
        this.#dropStates(slot)
      }
      this.#patched(slot.group)
    }
    for (const manifest of push.manifests) this.#setClass(manifest)
    for (const id of this.#orphans) if (!hasMembers(id)) this.#dropOrphan(id)
    for (const id of push.whole ? this.#classesBeside(push, hasMembers) : push.retiredClasses) this.#deleteClass(id)
    for (const id of push.whole ? this.#groupsBeside(push) : push.retiredGroups) this.#retire(id)
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
    this.misfits.delete(id)
    const slot = this.#slots.get(id)
    if (!slot?.group) return
    // A class that the push queue does not know has what it names until its last member goes.
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

  /** A digest of the policies of a class; empty for none. */
  policiesOf(classId: string): string {
    return this.#policies.get(classId) ?? ''
  }

  /** A class uses these groups no longer, unless it uses them still. */
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

  /** The set of these hosts; equal lists are one set as long as one is in use. */
  #hiddenHosts(hide: readonly string[]): HiddenHosts {
    // What belongs to no host is never hidden.
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

  #classesBeside({ manifests }: Push, hasMembers: (classId: string) => boolean): string[] {
    const named = new Set(manifests.map(({ classId }) => classId))
    const beside = [...this.#classes.keys()].filter((id) => !named.has(id))
    for (const id of beside) this.#orphans.add(id)
    return beside.filter((id) => !hasMembers(id))
  }

  #groupsBeside({ groups }: Push): string[] {
    const named = new Set(groups.map(({ group }) => group))
    return [...this.#slots.values()].filter(({ id, classes }) => !named.has(id) && classes.size === 0).map(({ id }) => id)
  }

  /** The state of a type for a class. */
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

  /** States are made anew for the classes that use a group. */
  #dropStates({ id, classes }: Slot): void {
    for (const classId of classes) {
      const states = this.#states.get(classId)
      for (const [typeUrl, uses] of (states && this.#classes.get(classId)) ?? []) if (uses.some(({ slot }) => slot.id === id)) states?.delete(typeUrl)
    }
  }

  /** Classes that use one of these groups. */
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

/** Types of which a class has nothing: those that proxies know, and all others. */
const nothing: ReadonlyMap<string, TypeState> = new Map(pushOrder.map((typeUrl) => [typeUrl, new TypeState(typeUrl, [])]))
const nothingElse = new TypeState('', [])
