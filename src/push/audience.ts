/**
 * Computes the part of each push that concerns one audience (the connections of one XDS writer): the classes of its connections, the groups
 * that their manifests name, and the slabs that contain the resources. Groups that the audience does not have yet are sent as a whole, the
 * others as updates.
 */
import type { ClassAssignment, GroupUpdate, Manifest, PushContent, SlabData } from '../../protocols/messages/push.ts'
import { ClassLife } from './classes/class-life.ts'

/** The changes that a push is made of. Which slabs and retired groups belong to the push follows from the state of each audience. */
export type PushChanges = Omit<PushContent, 'slabs' | 'retiredGroups'>

/** No changes. */
export const emptyPush: PushChanges = {
  whole: false,
  retiredSlabs: [],
  groups: [],
  manifests: [],
  retiredClasses: [],
  assignments: [],
}

/** Whether a push changes nothing. */
export function isEmptyPush({ whole, ...lists }: PushChanges): boolean {
  return !whole && Object.values(lists).every((list) => list.length === 0)
}

/**
 * The state after the last push. {@link Audience} reads from it the parts that the audience lacks and that are not in the push, because
 * they did not change.
 */
export interface Present {
  manifest(classId: string): Manifest | undefined
  /** An update that replaces the whole group. */
  wholeUpdate(group: string): GroupUpdate | undefined
  slab(id: number): SlabData | undefined
}

/** A class that connections of the audience belong to, or belonged to a moment ago. */
class KnownClass extends ClassLife {
  /** The manifest last sent. Undefined if the class could not be made yet. */
  manifest: Manifest | undefined
}

/** A group that a manifest of the audience names, or that the audience has. */
interface KnownGroup {
  readonly id: string
  /** How many manifests of known classes name it. */
  namings: number
  /** Whether the audience has it. */
  isSent: boolean
}

/** The state of one audience, as far as it was sent. Every push has to pass through `next`, in order. */
export class Audience {
  readonly #present: Present
  /** The classes of the connections. */
  readonly #connections = new Map<string, KnownClass>()
  readonly #classes = new Map<string, KnownClass>()
  readonly #groups = new Map<string, KnownGroup>()
  readonly #slabs = new Set<number>()
  /** Connections whose class has not been sent yet, because the class could not be made. They keep their configuration until then. */
  readonly #unassigned = new Set<string>()
  /** Groups that gained their first or lost their last naming manifest in the present push. */
  readonly #namingChanged = new Set<KnownGroup>()

  /** Creates an audience that has nothing and no connections. */
  constructor(present: Present) {
    this.#present = present
  }

  /** Removes a connection that closed at `now`, in monotonic milliseconds. */
  connectionClosed(connection: string, now: number): void {
    const known = this.#connections.get(connection)
    if (!known) return
    this.#connections.delete(connection)
    this.#unassigned.delete(connection)
    known.leave(now)
  }

  /**
   * Returns the part of a push that concerns the audience, together with what the audience lacks for it. The assignments are those of its
   * own connections. `now` is in monotonic milliseconds.
   */
  next(push: PushChanges, now: number): PushContent {
    const fresh = push.assignments.filter((assignment) => this.#assign(assignment, now)).map(({ classId }) => classId)
    const retiredClasses = this.#retire(push.retiredClasses, now)
    const changed = push.manifests.map(({ classId }) => classId).filter((id) => this.#classes.has(id))
    const manifests = [...new Set([...changed, ...fresh])].flatMap((id) => this.#manifest(id) ?? [])
    const { groups, retiredGroups } = this.#groupsOf(push)
    return {
      whole: push.whole,
      slabs: this.#slabsOf(groups),
      retiredSlabs: push.retiredSlabs.filter((id) => this.#slabs.delete(id)),
      groups,
      retiredGroups,
      manifests,
      retiredClasses,
      assignments: this.#assignments(),
    }
  }

  /** The assignments of connections whose classes have been made, each returned once. */
  #assignments(): ClassAssignment[] {
    const assigned: ClassAssignment[] = []
    for (const connection of this.#unassigned) {
      const known = this.#connections.get(connection)
      if (!known?.manifest) continue
      assigned.push({ connection, classId: known.id })
      this.#unassigned.delete(connection)
    }
    return assigned
  }

  /** Returns whether the class is new to the audience. */
  #assign({ connection, classId }: ClassAssignment, now: number): boolean {
    const before = this.#connections.get(connection)
    const known = this.#classes.get(classId)
    const of = known ?? new KnownClass(classId)
    if (!known) this.#classes.set(classId, of)
    of.join()
    before?.leave(now)
    this.#connections.set(connection, of)
    this.#unassigned.add(connection)
    return !known
  }

  /** Forgets the classes among `retired`, and those whose grace period is over, that have no connections. Returns their ids. */
  #retire(retired: readonly string[], now: number): string[] {
    const ended = new Set<KnownClass>()
    for (const id of retired) {
      const known = this.#classes.get(id)
      // A retired class that has connections again is not retired.
      if (known?.state === 'lingering') ended.add(known)
    }
    for (const known of this.#classes.values()) if (known.isExpired(now)) ended.add(known)
    for (const known of ended) {
      known.end()
      this.#name(known.manifest, -1)
      this.#classes.delete(known.id)
    }
    return Array.from(ended, ({ id }) => id)
  }

  /** Stores and returns the present manifest of a known class. */
  #manifest(classId: string): Manifest | undefined {
    const manifest = this.#present.manifest(classId)
    const known = this.#classes.get(classId)
    if (!known || !manifest) return undefined
    this.#name(manifest, 1)
    this.#name(known.manifest, -1)
    known.manifest = manifest
    return manifest
  }

  /** Adds to the counts of the groups that a manifest names. */
  #name(manifest: Manifest | undefined, by: 1 | -1): void {
    for (const uses of Object.values(manifest?.groups ?? {}))
      for (const { group } of uses) {
        let known = this.#groups.get(group)
        if (!known) this.#groups.set(group, (known = { id: group, namings: 0, isSent: false }))
        known.namings += by
        if (known.namings === 0 || (known.namings === 1 && by === 1)) this.#namingChanged.add(known)
      }
  }

  /**
   * Called after the manifests were stored. Returns the updates of the named groups (whole groups where they are new), and the groups that
   * no manifest names any more.
   */
  #groupsOf(push: PushChanges): Pick<PushContent, 'groups' | 'retiredGroups'> {
    const groups: GroupUpdate[] = []
    for (const update of push.groups) {
      const known = this.#groups.get(update.group)
      if (!known || known.namings === 0 || !(update.base === 0 || known.isSent)) continue
      known.isSent = true
      groups.push(update)
    }
    const retiredGroups: string[] = []
    for (const known of this.#namingChanged) {
      const { id, namings, isSent } = known
      const whole = namings > 0 && !isSent ? this.#present.wholeUpdate(id) : undefined
      if (whole) {
        known.isSent = true
        groups.push(whole)
      }
      if (namings > 0) continue
      this.#groups.delete(id)
      if (isSent) retiredGroups.push(id)
    }
    this.#namingChanged.clear()
    return { groups, retiredGroups }
  }

  /** The slabs that updates refer to and that the audience does not have yet. */
  #slabsOf(updates: readonly GroupUpdate[]): SlabData[] {
    const slabs: SlabData[] = []
    for (const { changed } of updates)
      for (const { slices } of changed)
        for (let at = 0; at < slices.length; at += 3) {
          const id = slices[at] as number
          if (this.#slabs.has(id)) continue
          this.#slabs.add(id)
          const slab = this.#present.slab(id)
          if (slab) slabs.push(slab)
        }
    return slabs
  }
}
