/**
 * Clusters and load assignments that a class keeps for a short time after they were removed from it, because routes and listeners that
 * still refer to them have to be replaced first (docs/resources.md, Q5). A group that the class no longer uses stays in use unchanged. When
 * a group hides more hosts than before, the resources of those hosts that no other group of the class contains are copied into a group of
 * their own.
 */
import { hostOf } from '../../xds/names.ts'
import type { GroupStore } from '../../xds/slab/group-store.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'
import type { ClassGroup, ClassUse, KeptUse, ServedClass } from '../classes/served-class.ts'

/** Type URLs of the resources that are kept after their removal. */
export const lingeringTypes: ReadonlySet<string> = new Set([clusterType, endpointType])

/** Decides which groups classes keep in addition to their present ones. */
export class Lingering {
  readonly #store: GroupStore
  readonly #copy: (typeUrl: string, resources: readonly Resource[]) => ClassGroup
  /** The classes that keep groups. */
  readonly #keeping = new Set<ServedClass>()

  /** `copy` makes a group of some resources. */
  constructor(store: GroupStore, copy: (typeUrl: string, resources: readonly Resource[]) => ClassGroup) {
    this.#store = store
    this.#copy = copy
  }

  /** Determines what a class keeps of the groups it had before: the resources that its present groups (`now`) do not contain. */
  keep(served: ServedClass, before: readonly KeptUse[], now: readonly ClassUse[]): void {
    const kept: KeptUse[] = []
    for (const had of before) {
      if (kept.some(({ group }) => group === had.group)) continue
      const present = now.filter(({ group }) => group.typeUrl === had.group.typeUrl)
      const same = present.find(({ group }) => group === had.group)
      if (!same) {
        if (this.#showsMore(had, present)) kept.push(had)
        continue
      }
      const copied = this.#copyHidden(had, same, present)
      if (copied) kept.push({ group: copied, hide: nothing, due: had.due })
    }
    this.#set(served, kept)
  }

  /** Sets what a class keeps. */
  #set(served: ServedClass, kept: readonly KeptUse[]): void {
    const before = served.kept
    served.kept = kept.length > 0 ? kept : nothing
    for (const { group } of kept) group.keep(served)
    for (const { group } of before) if (!kept.some((use) => use.group === group)) group.release(served)
    if (kept.length > 0) this.#keeping.add(served)
    else this.#keeping.delete(served)
  }

  /** Whether a use contains a resource name that no present group contains. */
  #showsMore({ group, hide }: ClassUse, present: readonly ClassUse[]): boolean {
    const { typeUrl } = group
    const hidden = new Set(hide)
    const shown = this.#isShown(present)
    const size = (of: ClassGroup): number => this.#store.resources(of.id).size
    // The largest present group contains all names except those listed as missing from it and those hidden in it, so that only these need
    // checking.
    const most = present.reduce<ClassUse | undefined>((one, other) => (one && size(one.group) >= size(other.group) ? one : other), undefined)
    const candidates =
      most && size(most.group) >= size(group)
        ? [...this.#store.missingFrom(most.group.id, group.id), ...most.hide.flatMap((host) => this.#store.namesOf(group.id, typeUrl, host))]
        : this.#store.resources(group.id).keys()
    for (const name of candidates) if (!hidden.has(hostOf(typeUrl, name)) && !shown(name)) return true
    return false
  }

  /**
   * Copies the resources of newly hidden hosts that the present groups do not contain. Returns the group of copies, or undefined if there
   * are none.
   */
  #copyHidden({ group, hide }: ClassUse, now: ClassUse, present: readonly ClassUse[]): ClassGroup | undefined {
    const hidden = new Set(hide)
    const hosts = now.hide.filter((host) => !hidden.has(host))
    if (hosts.length === 0) return undefined
    const shown = this.#isShown(present)
    const names = hosts.flatMap((host) => this.#store.namesOf(group.id, group.typeUrl, host)).filter((name) => !shown(name))
    if (names.length === 0) return undefined
    const resources = this.#store.resources(group.id)
    return this.#copy(
      group.typeUrl,
      names.flatMap((name) => resources.get(name) ?? []),
    )
  }

  #isShown(uses: readonly ClassUse[]): (name: string) => boolean {
    const shown = uses.map(({ group, hide }) => ({ group, resources: this.#store.resources(group.id), hidden: new Set(hide) }))
    return (name) => shown.some(({ group, resources, hidden }) => resources.has(name) && !hidden.has(hostOf(group.typeUrl, name)))
  }

  /** The earliest time at which a kept group is due, in monotonic milliseconds. Undefined when nothing is kept. */
  get next(): number | undefined {
    let next: number | undefined
    for (const { kept } of this.#keeping) for (const { due } of kept) if (next === undefined || due < next) next = due
    return next
  }

  /** Drops the kept groups that are due by `now`. Returns the classes that kept them. */
  sweep(now: number): ServedClass[] {
    const classes: ServedClass[] = []
    for (const served of [...this.#keeping]) {
      const kept = served.kept.filter(({ due }) => due > now)
      if (kept.length === served.kept.length) continue
      classes.push(served)
      this.#set(served, kept)
    }
    return classes
  }

  /** Lets a class keep nothing. */
  forget(served: ServedClass): void {
    this.#set(served, nothing)
  }
}

const nothing: readonly never[] = []
