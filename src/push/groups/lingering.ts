/**
 * Clusters and load assignments that a class keeps for a short time after they were removed from it, because routes and listeners that
 * still refer to them have to be replaced first (docs/resources.md, Q5). A group that the class no longer uses stays in use unchanged. When
 * a group hides more hosts than before, the resources of those hosts that no other group of the class contains are copied into a group of
 * their own.
 */
import type { GroupUse } from '../../../protocols/messages/push.ts'
import { hostOf } from '../../xds/names.ts'
import type { GroupStore } from '../../xds/slab/group-store.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'

/** Type URLs of the resources that are kept after their removal. */
export const lingeringTypes: ReadonlySet<string> = new Set([clusterType, endpointType])

/** Groups in use by type URL. When several contain a resource of the same name, the first in which it is not being removed counts. */
export type Uses = Readonly<Record<string, readonly GroupUse[]>>

/** A group that a class used, and the time at which the class drops it, in monotonic milliseconds. */
export interface LingeringUse {
  readonly typeUrl: string
  readonly use: GroupUse
  readonly due: number
}

/** The groups that classes keep in addition to their present ones. */
export class Lingering {
  readonly #groups: GroupStore
  readonly #uses = new Map<string, readonly LingeringUse[]>()
  /** Ids of the groups of copies; a copy is removed with its last use. */
  readonly #copies = new Set<string>()
  #last = 0

  constructor(groups: GroupStore) {
    this.#groups = groups
  }

  /** The groups that a class keeps. */
  of(classId: string): readonly LingeringUse[] {
    return this.#uses.get(classId) ?? nothing
  }

  /** Determines and stores what a class keeps of the groups it had before: the resources that its present groups do not contain. */
  keep(classId: string, before: readonly LingeringUse[], now: Uses): void {
    const kept: LingeringUse[] = []
    for (const had of before) {
      const { typeUrl, use, due } = had
      const present = now[typeUrl] ?? []
      if (kept.some((other) => other.typeUrl === typeUrl && other.use.group === use.group)) continue
      const same = present.find(({ group }) => group === use.group)
      if (!same) {
        if (this.#showsMore(had, present)) kept.push(had)
        continue
      }
      const copied = this.#copyHidden(had, same, present)
      if (copied) kept.push({ typeUrl, use: { group: copied, hide: nothing }, due })
    }
    if (kept.length > 0) this.#uses.set(classId, kept)
    else this.#uses.delete(classId)
    this.#retireCopies()
  }

  /** Whether a use contains a resource name that no present group contains. */
  #showsMore({ typeUrl, use }: LingeringUse, present: readonly GroupUse[]): boolean {
    const hidden = new Set(use.hide)
    const shown = this.#isShown(typeUrl, present)
    const size = ({ group }: GroupUse): number => this.#groups.resources(group).size
    // The largest present group contains all names except those listed as missing from it and those hidden in it, so that only these need
    // checking.
    const most = present.reduce<GroupUse | undefined>((one, other) => (one && size(one) >= size(other) ? one : other), undefined)
    const candidates =
      most && size(most) >= size(use)
        ? [...this.#groups.missingFrom(most.group, use.group), ...most.hide.flatMap((host) => this.#groups.namesOf(use.group, typeUrl, host))]
        : this.#groups.resources(use.group).keys()
    for (const name of candidates) if (!hidden.has(hostOf(typeUrl, name)) && !shown(name)) return true
    return false
  }

  /**
   * Copies the resources of newly hidden hosts that the present groups do not contain. Returns the id of the group of copies, or undefined
   * if there are none.
   */
  #copyHidden({ typeUrl, use }: LingeringUse, now: GroupUse, present: readonly GroupUse[]): string | undefined {
    const hidden = new Set(use.hide)
    const hosts = now.hide.filter((host) => !hidden.has(host))
    if (hosts.length === 0) return undefined
    const shown = this.#isShown(typeUrl, present)
    const names = hosts.flatMap((host) => this.#groups.namesOf(use.group, typeUrl, host)).filter((name) => !shown(name))
    if (names.length === 0) return undefined
    const id = `lingering|${++this.#last}`
    const resources = this.#groups.resources(use.group)
    this.#groups.replace(
      id,
      names.flatMap((name) => resources.get(name) ?? []),
    )
    this.#copies.add(id)
    return id
  }

  #isShown(typeUrl: string, uses: readonly GroupUse[]): (name: string) => boolean {
    const shown = uses.map(({ group, hide }) => ({ resources: this.#groups.resources(group), hidden: new Set(hide) }))
    return (name) => shown.some(({ resources, hidden }) => resources.has(name) && !hidden.has(hostOf(typeUrl, name)))
  }

  /** The earliest time at which a kept group is due, in monotonic milliseconds. Undefined when nothing is kept. */
  get next(): number | undefined {
    let next: number | undefined
    for (const uses of this.#uses.values()) for (const { due } of uses) if (next === undefined || due < next) next = due
    return next
  }

  /** Drops the kept groups that are due by `now`. Returns the classes that kept them. */
  sweep(now: number): string[] {
    const classes: string[] = []
    for (const [classId, uses] of this.#uses) {
      const kept = uses.filter(({ due }) => due > now)
      if (kept.length === uses.length) continue
      classes.push(classId)
      if (kept.length > 0) this.#uses.set(classId, kept)
      else this.#uses.delete(classId)
    }
    this.#retireCopies()
    return classes
  }

  /** Removes a class. */
  forget(classId: string): void {
    if (this.#uses.delete(classId)) this.#retireCopies()
  }

  /** The groups that some class keeps. */
  get groups(): ReadonlySet<string> {
    return new Set([...this.#uses.values()].flatMap((uses) => uses.map(({ use }) => use.group)))
  }

  #retireCopies(): void {
    if (this.#copies.size === 0) return
    const { groups } = this
    for (const id of this.#copies) {
      if (groups.has(id)) continue
      this.#copies.delete(id)
      this.#groups.retire(id)
    }
  }
}

const nothing: readonly never[] = []
