/**
 * What an audience of pushes (the connections of one XDS writer) is told: the classes that its connections are of, the groups that the
 * manifests of these name, and the slabs that hold what is in these. What it does not know of that comes whole, what it knows as patches.
 */
import type { ClassAssignment, GroupPatch, Manifest, PushContent, SlabData } from '../../protocols/messages/push.ts'

/** How long a class stays when no connection is of it any more, in milliseconds: most proxies that go are back soon. */
export const classGraceMs = 4000

/** A push of nothing. */
export const emptyPush: PushContent = {
  whole: false,
  slabs: [],
  retiredSlabs: [],
  groups: [],
  retiredGroups: [],
  manifests: [],
  retiredClasses: [],
  assignments: [],
}

/** What is there after the last push that was taken: {@link Audience} takes from it what is new to an audience, although it is old. */
export interface Present {
  manifest(classId: string): Manifest | undefined
  /** A group as a patch that replaces everything. */
  wholePatch(group: string): GroupPatch | undefined
  slab(id: number): SlabData | undefined
}

interface KnownClass {
  connections: number
  /** As it was told; undefined when it could not be made yet. */
  manifest: Manifest | undefined
}

/** What one audience knows. It must be told of every push, in order. */
export class Audience {
  readonly #present: Present
  readonly #classOf = new Map<string, string>()
  /** Connections that are still to be told their classes: those that could not be made yet. Until then they keep what they have. */
  readonly #untold = new Set<string>()
  readonly #classes = new Map<string, KnownClass>()
  /** Classes without connections, and since when, in monotonic milliseconds. */
  readonly #empty = new Map<string, number>()
  /** Groups that manifests of known classes name, and how often. */
  readonly #named = new Map<string, number>()
  /** Groups that are known. */
  readonly #groups = new Set<string>()
  readonly #slabs = new Set<number>()
  /** Groups that manifests began or ceased to name in the present push. */
  readonly #renamed = new Set<string>()

  /** An audience that knows nothing, and has no connections. */
  constructor(present: Present) {
    this.#present = present
  }

  /** A connection is gone, at a time in monotonic milliseconds. */
  left(connection: string, now: number): void {
    const classId = this.#classOf.get(connection)
    this.#classOf.delete(connection)
    this.#untold.delete(connection)
    if (classId !== undefined) this.#leave(classId, now)
  }

  /** What of a push concerns the audience, with what it lacks for that. The assignments are those of its own connections; `now` is monotonic, in milliseconds. */
  next(push: PushContent, now: number): PushContent {
    const fresh = push.assignments.filter((assignment) => this.#assign(assignment, now)).map(({ classId }) => classId)
    // One that was retired and has connections is there again.
    const retiredClasses = [...new Set([...push.retiredClasses, ...this.#expired(now)])].filter((id) => this.#empty.has(id))
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

  /** The connections whose classes are known by now, each once. */
  #assignments(): ClassAssignment[] {
    const told = [...this.#untold].flatMap((connection): ClassAssignment[] => {
      const classId = this.#classOf.get(connection)
      return classId !== undefined && this.#classes.get(classId)?.manifest ? [{ connection, classId }] : []
    })
    for (const { connection } of told) this.#untold.delete(connection)
    return told
  }

  /** Returns whether the class is new here. */
  #assign({ connection, classId }: ClassAssignment, now: number): boolean {
    const before = this.#classOf.get(connection)
    this.#classOf.set(connection, classId)
    this.#untold.add(connection)
    if (before !== undefined) this.#leave(before, now)
    this.#empty.delete(classId)
    const known = this.#classes.get(classId)
    if (known) known.connections++
    else this.#classes.set(classId, { connections: 1, manifest: undefined })
    return !known
  }

  #leave(classId: string, now: number): void {
    const known = this.#classes.get(classId)
    if (known && --known.connections === 0) this.#empty.set(classId, now)
  }

  #expired(now: number): string[] {
    return [...this.#empty].flatMap(([id, since]) => (now - since >= classGraceMs ? id : []))
  }

  #forget(classId: string): void {
    this.#empty.delete(classId)
    this.#name(this.#classes.get(classId)?.manifest, -1)
    this.#classes.delete(classId)
  }

  /** Takes the present manifest of a known class over. */
  #manifest(classId: string): Manifest | undefined {
    const manifest = this.#present.manifest(classId)
    const known = this.#classes.get(classId)
    if (!known || !manifest) return undefined
    this.#name(manifest, 1)
    this.#name(known.manifest, -1)
    known.manifest = manifest
    return manifest
  }

  /** Counts the groups that a manifest names. */
  #name(manifest: Manifest | undefined, by: 1 | -1): void {
    for (const uses of Object.values(manifest?.groups ?? {}))
      for (const { group } of uses) {
        const count = (this.#named.get(group) ?? 0) + by
        if (count > 0) this.#named.set(group, count)
        else this.#named.delete(group)
        if (count === 0 || (count === 1 && by === 1)) this.#renamed.add(group)
      }
  }

  /** After the manifests were taken over: the groups of a push that they name, whole ones where they are new, and those that no manifest names any more. */
  #groupsOf(push: PushContent): Pick<PushContent, 'groups' | 'retiredGroups'> {
    const groups: GroupPatch[] = []
    for (const patch of push.groups) {
      if (!this.#named.has(patch.group) || !(patch.base === 0 || this.#groups.has(patch.group))) continue
      this.#groups.add(patch.group)
      groups.push(patch)
    }
    const retiredGroups: string[] = []
    for (const id of this.#renamed) {
      const whole = this.#named.has(id) && !this.#groups.has(id) ? this.#present.wholePatch(id) : undefined
      if (whole) {
        this.#groups.add(id)
        groups.push(whole)
      } else if (!this.#named.has(id) && this.#groups.delete(id)) retiredGroups.push(id)
    }
    this.#renamed.clear()
    return { groups, retiredGroups }
  }

  /** Slabs that patches refer to and that are not known yet. */
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
