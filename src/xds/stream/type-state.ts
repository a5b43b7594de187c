/**
 * What a class has of one type: groups without what it hides of them. Of resources of one name in several groups it has that of the first in which
 * the name stays; one that is leaving counts only where no group has it to stay. This is the one place that says which resources those are.
 */
import { hostOf } from '../names.ts'
import { addSums, subtractSums, versionOfSum, zeroSum } from '../slab/sums.ts'
import { Contents } from './contents.ts'
import type { Entry } from './entry.ts'
import type { HiddenHosts, Seen, VisibleGroup } from './group.ts'

/** What a stream has of a type when it has taken everything: names and versions, without bytes. It never changes. */
export interface Holding {
  /** Equal for equal holdings, within one catalog. */
  readonly key: string
  readonly version: string
  readonly groups: readonly Seen[]
  /** Names that several of the groups show. */
  readonly shadowed: readonly string[]
}

/** The state of one type for one class: its groups, and a version made of what it sees of them. */
export class TypeState {
  readonly typeUrl: string
  readonly groups: readonly VisibleGroup[]
  readonly holding: Holding
  /** Names of which another group's resource counts, by group. */
  readonly #shadowed = new Map<VisibleGroup, Set<string>>()

  constructor(typeUrl: string, groups: readonly VisibleGroup[]) {
    this.typeUrl = typeUrl
    this.groups = groups
    const seen = groups.map((group) => group.seen)
    let sum = seen.reduce((total, part) => addSums(total, part.sum), zeroSum)
    for (const [index, visible] of groups.entries())
      for (const earlier of groups.slice(0, index))
        for (const name of commonNames(earlier, visible)) this.#shadow(isLeft(earlier, visible, name) ? earlier : visible, name)
    for (const [visible, names] of this.#shadowed) for (const name of names) sum = subtractSums(sum, visible.group.numberOf(name))
    this.holding = {
      key: seen.map(({ serial }) => serial).join(),
      version: versionOfSum(sum),
      groups: seen,
      shadowed: [...this.#shadowed.values()].flatMap((names) => [...names]),
    }
  }

  #shadow(visible: VisibleGroup, name: string): void {
    const names = this.#shadowed.get(visible)
    if (names) names.add(name)
    else this.#shadowed.set(visible, new Set([name]))
  }

  get version(): string {
    return this.holding.version
  }

  /** The resource of a name, if the class has it. */
  find(name: string): Entry | undefined {
    const host = hostOf(this.typeUrl, name)
    let leaving: Entry | undefined
    for (const group of this.groups) {
      const entry = group.find(name, host)
      if (entry && !group.seen.leaving.has(name)) return entry
      leaving ??= entry
    }
    return leaving
  }

  /** All resources that the class has. */
  *entries(): Generator<Entry> {
    for (const group of this.groups) yield* this.entriesOf(group)
  }

  /** Those that it has of one of its groups. */
  *entriesOf(visible: VisibleGroup): Generator<Entry> {
    const unseen = new Set(this.unseen(visible))
    for (const entry of visible.group.entries.values()) if (unseen.size === 0 || !unseen.has(entry.name)) yield entry
  }

  /** Whether another group's resource counts for a name of this one. */
  isShadowed(visible: VisibleGroup): boolean {
    return this.#shadowed.has(visible)
  }

  /** Names in one of its groups that the class does not have from it: hidden ones, and those for which another group counts. */
  *unseen(visible: VisibleGroup): Generator<string> {
    yield* visible.hiddenNames()
    yield* this.#shadowed.get(visible) ?? []
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
    // Which of the groups counts may be another without a change in any.
    for (const name of [...sent.shadowed, ...this.holding.shadowed]) names.add(name)
    for (const { contents } of before.values()) for (const [name] of contents.entries()) names.add(name)
    return names
  }
}

/** Groups with more names than this are compared once for the names that both have. */
const fewNames = 16

/** What groups have in common, by their sets of names. */
const compared = new WeakMap<object, WeakMap<object, { readonly hidden: readonly [HiddenHosts, HiddenHosts]; readonly names: readonly string[] }>>()

/** Names that are visible in both of two groups. */
function commonNames(one: VisibleGroup, other: VisibleGroup): readonly string[] {
  const [small, large] = one.group.entries.size < other.group.entries.size ? [one, other] : [other, one]
  const names = () =>
    [...small.group.entries.keys()].filter((name) => {
      if (!large.group.entries.has(name)) return false
      const host = hostOf(small.typeUrl, name)
      return small.find(name, host) !== undefined && large.find(name, host) !== undefined
    })
  if (small.group.entries.size <= fewNames) return names()
  let known = compared.get(small.group.names)
  if (!known) compared.set(small.group.names, (known = new WeakMap()))
  const found = known.get(large.group.names)
  if (found?.hidden[0] === small.seen.hidden && found.hidden[1] === large.seen.hidden) return found.names
  const made = names()
  known.set(large.group.names, { hidden: [small.seen.hidden, large.seen.hidden], names: made })
  return made
}

/** Whether a name that two groups show is leaving in the earlier, and stays in the later. */
const isLeft = (earlier: VisibleGroup, later: VisibleGroup, name: string): boolean => earlier.seen.leaving.has(name) && !later.seen.leaving.has(name)

const onlyIn = (one: HiddenHosts, other: HiddenHosts): string[] => [...one].filter((host) => !other.has(host))

/** The version of a name in what was sent; undefined when it was not in it. */
export function versionOf(groups: readonly Seen[], name: string, host: string): string | undefined {
  let left: string | undefined
  for (const { contents, hidden, leaving } of groups) {
    const version = hidden.has(host) ? undefined : contents.get(name)
    if (version !== undefined && !leaving.has(name)) return version
    left ??= version
  }
  return left
}
