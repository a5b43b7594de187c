/** What a class has of one type: groups without what it hides of them. This is the one place that says which resources those are. */
import { hostOf } from '../names.ts'
import { addSums, versionOfSum, zeroSum } from '../slab/sums.ts'
import { Contents } from './contents.ts'
import type { Entry, HiddenHosts, Seen, VisibleGroup } from './group.ts'

/** What a stream has of a type when it has taken everything: names and versions, without bytes. It never changes. */
export interface Holding {
  /** Equal for equal holdings, within one catalog. */
  readonly key: string
  readonly version: string
  readonly groups: readonly Seen[]
}

/** The state of one type for one class: its groups, and a version made of what it sees of them. */
export class TypeState {
  readonly typeUrl: string
  readonly groups: readonly VisibleGroup[]
  readonly holding: Holding

  constructor(typeUrl: string, groups: readonly VisibleGroup[]) {
    this.typeUrl = typeUrl
    this.groups = groups
    const seen = groups.map((group) => group.seen)
    const version = versionOfSum(seen.reduce((sum, part) => addSums(sum, part.sum), zeroSum))
    this.holding = { key: seen.map(({ serial }) => serial).join(), version, groups: seen }
  }

  get version(): string {
    return this.holding.version
  }

  /** The resource of a name, if the class has it. */
  find(name: string): Entry | undefined {
    const host = hostOf(this.typeUrl, name)
    for (const group of this.groups) {
      const entry = group.find(name, host)
      if (entry) return entry
    }
    return undefined
  }

  /** All resources that the class has. */
  *entries(): Generator<Entry> {
    for (const group of this.groups) yield* group.entries()
  }

  /** Names that changed, went and came since a state was sent. A name that moved from one group to another with the same version did none of these. */
  since(sent: Holding): { changed: Set<string>; removed: Set<string>; added: Set<string> } {
    const changed = new Set<string>()
    const removed = new Set<string>()
    const added = new Set<string>()
    for (const name of this.#candidates(sent)) {
      const host = hostOf(this.typeUrl, name)
      const before = versionOf(sent.groups, name, host)
      const after = versionOf(this.holding.groups, name, host)
      if (before === after) continue
      if (after === undefined) removed.add(name)
      else changed.add(name)
      if (before === undefined) added.add(name)
    }
    return { changed, removed, added }
  }

  /** Names that may differ: those on pages of groups that are others now, and those of hosts that were hidden or are now, but not both. */
  #candidates(sent: Holding): Set<string> {
    const names = new Set<string>()
    const before = new Map(sent.groups.map((seen) => [seen.group, seen]))
    for (const { group, seen: now } of this.groups) {
      const then = before.get(now.group)
      before.delete(now.group)
      if (now === then) continue
      for (const name of group.touchedSince(then?.contents ?? Contents.empty)) names.add(name)
      if (!then || then.hidden === now.hidden) continue
      for (const host of [...onlyIn(then.hidden, now.hidden), ...onlyIn(now.hidden, then.hidden)])
        for (const name of group.namesOf(this.typeUrl, host)) names.add(name)
    }
    for (const { contents } of before.values()) for (const [name] of contents.entries()) names.add(name)
    return names
  }
}

const onlyIn = (one: HiddenHosts, other: HiddenHosts): string[] => [...one].filter((host) => !other.has(host))

function versionOf(groups: readonly Seen[], name: string, host: string): string | undefined {
  for (const { contents, hidden } of groups) {
    const version = hidden.has(host) ? undefined : contents.get(name)
    if (version !== undefined) return version
  }
  return undefined
}
