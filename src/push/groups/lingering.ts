/**
 * What classes keep for a moment of groups that they do not have any more: routes and listeners that still name it must go first (docs/resources.md, Q5).
 * A group that is left stays in use as it is; of a group of which more is hidden than before, what no other group of the class shows is copied into a group of its own.
 */
import type { GroupUse } from '../../../protocols/messages/push.ts'
import { hostOf } from '../../xds/names.ts'
import type { GroupStore } from '../../xds/slab/group-store.ts'
import { clusterType, endpointType } from '../../xds/type-urls.ts'

/** Types whose resources outlive their reason. */
export const lingeringTypes: ReadonlySet<string> = new Set([clusterType, endpointType])

/** Groups in use by type URL; of a name in several of them the first counts in which it is not leaving. */
export type Uses = Readonly<Record<string, readonly GroupUse[]>>

/** A group that a class had, and until when it keeps it, in monotonic milliseconds. */
export interface LingeringUse {
  readonly typeUrl: string
  readonly use: GroupUse
  readonly due: number
}

/** The groups that classes keep beside those that they have. */
export class Lingering {
  readonly #groups: GroupStore
  readonly #uses = new Map<string, readonly LingeringUse[]>()
  /** Groups of copies; they go with the last use. */
  readonly #copies = new Set<string>()
  #last = 0

  constructor(groups: GroupStore) {
    this.#groups = groups
  }

  /** What a class keeps. */
  of(classId: string): readonly LingeringUse[] {
    return this.#uses.get(classId) ?? nothing
  }

  /** Sets what a class keeps of what it had before, in view of what it has now: only what would be gone otherwise. */
  settle(classId: string, before: readonly LingeringUse[], now: Uses): void {
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

  /** Whether a use shows a name that no other does. */
  #showsMore({ typeUrl, use }: LingeringUse, present: readonly GroupUse[]): boolean {
    const hidden = new Set(use.hide)
    const shown = this.#isShown(typeUrl, present)
    const size = ({ group }: GroupUse): number => this.#groups.resources(group).size
    // The group with most of the names shows all but those that it does not have and those that are hidden in it.
    const most = present.reduce<GroupUse | undefined>((one, other) => (one && size(one) >= size(other) ? one : other), undefined)
    const candidates =
      most && size(most) >= size(use)
        ? [...this.#groups.missingFrom(most.group, use.group), ...most.hide.flatMap((host) => this.#groups.namesOf(use.group, typeUrl, host))]
        : this.#groups.resources(use.group).keys()
    for (const name of candidates) if (!hidden.has(hostOf(typeUrl, name)) && !shown(name)) return true
    return false
  }

  /** Copies what a use shows and the present ones do not, of hosts that are hidden now; the id of the group, if there is anything. */
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

  /** When the first of all that is kept is due, in monotonic milliseconds; undefined when nothing is kept. */
  get next(): number | undefined {
    let next: number | undefined
    for (const uses of this.#uses.values()) for (const { due } of uses) if (next === undefined || due < next) next = due
    return next
  }

  /** Lets go of what was due by `now`. Returns the classes that kept it. */
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

  /** A class is gone. */
  forget(classId: string): void {
    if (this.#uses.delete(classId)) this.#retireCopies()
  }

  /** Groups that some class keeps. */
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
