/**
 * Computes the part of each push that concerns one audience (the connections of one XDS writer): the classes of its connections, the groups
 * that their manifests name, and the slabs that contain the resources. Groups that the audience does not have yet are sent as a whole, the
 * others as patches.
 */
import type { ClassAssignment, GroupPatch, Manifest, PushContent, SlabData } from '../../protocols/messages/push.ts'
import { EmptyClasses } from './classes/empty-classes.ts'

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

/**
 * The state after the last push. {@link Audience} reads from it the parts that the audience lacks and that are not in the push, because
 * they did not change.
 */
export interface Present {
  manifest(classId: string): Manifest | undefined
  /** A patch that replaces the whole group. */
  wholePatch(group: string): GroupPatch | undefined
  slab(id: number): SlabData | undefined
}

interface KnownClass {
  connections: number
  /** The manifest last sent. Undefined if the class could not be made yet. */
  manifest: Manifest | undefined
}

/** The state of one audience, as far as it was sent. Every push has to pass through `next`, in order. */
export class Audience {
  readonly #present: Present
  readonly #classOf = new Map<string, string>()
  /** Connections whose class has not been sent yet, because the class could not be made. They keep their configuration until then. */
  readonly #unassigned = new Set<string>()
  readonly #classes = new Map<string, KnownClass>()
  readonly #empty = new EmptyClasses()
  /** How many manifests of known classes name each group. */
  readonly #named = new Map<string, number>()
  /** Groups that the audience has. */
  readonly #groups = new Set<string>()
  readonly #slabs = new Set<number>()
  /** Groups that gained their first or lost their last naming manifest in the present push. */
  readonly #namingChanged = new Set<string>()

  /** Creates an audience that has nothing and no connections. */
  constructor(present: Present) {
    this.#present = present
  }

  /** Removes a connection that closed at `now`, in monotonic milliseconds. */
  connectionClosed(connection: string, now: number): void {
    const classId = this.#classOf.get(connection)
    this.#classOf.delete(connection)
    this.#unassigned.delete(connection)
    if (classId !== undefined) this.#leave(classId, now)
  }

  /**
   * Returns the part of a push that concerns the audience, together with what the audience lacks for it. The assignments are those of its
   * own connections. `now` is in monotonic milliseconds.
   */
  next(push: PushChanges, now: number): PushContent {
    const fresh = push.assignments.filter((assignment) => this.#assign(assignment, now)).map(({ classId }) => classId)
    // A retired class that has connections again is not retired.
    const retiredClasses = [...new Set([...push.retiredClasses, ...this.#empty.expired(now)])].filter((id) => this.#empty.has(id))
    for (const id of retiredClasses) this.#forget(id)
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
    const assigned = [...this.#unassigned].flatMap((connection): ClassAssignment[] => {
      const classId = this.#classOf.get(connection)
      return classId !== undefined && this.#classes.get(classId)?.manifest ? [{ connection, classId }] : []
    })
    for (const { connection } of assigned) this.#unassigned.delete(connection)
    return assigned
  }

  /** Returns whether the class is new to the audience. */
  #assign({ connection, classId }: ClassAssignment, now: number): boolean {
    const before = this.#classOf.get(connection)
    this.#classOf.set(connection, classId)
    this.#unassigned.add(connection)
    if (before !== undefined) this.#leave(before, now)
    this.#empty.delete(classId)
    const known = this.#classes.get(classId)
    if (known) known.connections++
    else this.#classes.set(classId, { connections: 1, manifest: undefined })
    return !known
  }

  #leave(classId: string, now: number): void {
    const known = this.#classes.get(classId)
    if (known && --known.connections === 0) this.#empty.add(classId, now)
  }

  #forget(classId: string): void {
    this.#empty.delete(classId)
    this.#name(this.#classes.get(classId)?.manifest, -1)
    this.#classes.delete(classId)
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
        const count = (this.#named.get(group) ?? 0) + by
        if (count > 0) this.#named.set(group, count)
        else this.#named.delete(group)
        if (count === 0 || (count === 1 && by === 1)) this.#namingChanged.add(group)
      }
  }

  /**
   * Called after the manifests were stored. Returns the patches of the named groups (whole groups where they are new), and the groups that
   * no manifest names any more.
   */
  #groupsOf(push: PushChanges): Pick<PushContent, 'groups' | 'retiredGroups'> {
    const groups: GroupPatch[] = []
    for (const patch of push.groups) {
      if (!this.#named.has(patch.group) || !(patch.base === 0 || this.#groups.has(patch.group))) continue
      this.#groups.add(patch.group)
      groups.push(patch)
    }
    const retiredGroups: string[] = []
    for (const id of this.#namingChanged) {
      const whole = this.#named.has(id) && !this.#groups.has(id) ? this.#present.wholePatch(id) : undefined
      if (whole) {
        this.#groups.add(id)
        groups.push(whole)
      } else if (!this.#named.has(id) && this.#groups.delete(id)) retiredGroups.push(id)
    }
    this.#namingChanged.clear()
    return { groups, retiredGroups }
  }

  /** The slabs that patches refer to and that the audience does not have yet. */
  #slabsOf(patches: readonly GroupPatch[]): SlabData[] {
    const slabs: SlabData[] = []
    for (const { changed } of patches)
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
