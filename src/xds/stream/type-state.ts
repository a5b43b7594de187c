/**
 * The resources of one type that a class has: its groups without hidden hosts. If several groups show one name, the resource of the first
 * group in which the name is not leaving is used; if the name is leaving in all of them, that of the first. This is the only place that
 * implements this choice.
 */
import { hostOf } from '../names.ts'
import { addSums, subtractSums, versionOfSum, zeroSum } from '../slab/sums.ts'
import { Contents } from './contents.ts'
import type { Entry } from './entry.ts'
import type { HiddenHosts, Seen, VisibleGroup } from './group.ts'

/** An immutable record of what a stream has of a type once everything was delivered: names and versions, without bytes. */
export interface Holding {
  /** Equal for equal holdings, within one catalog. */
  readonly key: string
  readonly version: string
  readonly groups: readonly Seen[]
  /** Names that several of the groups show. */
  readonly shadowed: readonly string[]
}

/** The resources of one type for one class: its groups, and a version computed from the resources that are used. */
export class TypeState {
  readonly typeUrl: string
  readonly groups: readonly VisibleGroup[]
  readonly holding: Holding
  /** For each group, the names of which the resource of another group is used. */
  readonly #shadowed = new Map<VisibleGroup, Set<string>>()

  constructor(typeUrl: string, groups: readonly VisibleGroup[]) {
    this.typeUrl = typeUrl
    this.groups = groups
    const seen = groups.map((group) => group.seen)
    let sum = seen.reduce((total, part) => addSums(total, part.sum), zeroSum)
    for (const [index, visible] of groups.entries())
      for (const earlier of groups.slice(0, index))
        for (const name of commonNames(earlier, visible)) this.#shadow(isReplaced(earlier, visible, name) ? earlier : visible, name)
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

  /** Returns the resource of a name; undefined if the class has none. */
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

  /** Yields all resources that the class has. */
  *entries(): Generator<Entry> {
    for (const group of this.groups) yield* this.entriesOf(group)
  }

  /** Yields the resources that the class has from one of its groups. */
  *entriesOf(visible: VisibleGroup): Generator<Entry> {
    const unseen = new Set(this.unseen(visible))
    for (const entry of visible.group.entries.values()) if (unseen.size === 0 || !unseen.has(entry.name)) yield entry
  }

  /** Whether there is a name in this group of which the resource of another group is used. */
  isShadowed(visible: VisibleGroup): boolean {
    return this.#shadowed.has(visible)
  }

  /**
   * Yields the names of one of its groups that the class does not get from this group: hidden ones, and those of which the resource of
   * another group is used.
   */
  *unseen(visible: VisibleGroup): Generator<string> {
    yield* visible.hiddenNames()
    yield* this.#shadowed.get(visible) ?? []
  }

  /**
   * Returns the names that changed, were removed and were added since a holding was sent. A name that moved to another group with the same
   * version is in none of the three.
   */
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

  /**
   * Returns all names that may differ: those touched in a changed group, and those of hosts that are hidden in only one of the two states.
   */
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
    // The group whose resource is used may be another although no group changed.
    for (const name of [...sent.shadowed, ...this.holding.shadowed]) names.add(name)
    for (const { contents } of before.values()) for (const [name] of contents.entries()) names.add(name)
    return names
  }
}

/** For groups with more names than this the common names are cached. */
const fewNames = 16

/** The common names of pairs of groups, by the `names` tokens of the groups. */
const compared = new WeakMap<object, WeakMap<object, { readonly hidden: readonly [HiddenHosts, HiddenHosts]; readonly names: readonly string[] }>>()

/** Returns the names that two groups both show. */
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

/** Whether a name that two groups show is leaving in the earlier one and stays in the later one. */
const isReplaced = (earlier: VisibleGroup, later: VisibleGroup, name: string): boolean =>
  earlier.seen.leaving.has(name) && !later.seen.leaving.has(name)

const onlyIn = (one: HiddenHosts, other: HiddenHosts): string[] => [...one].filter((host) => !other.has(host))

/** Returns the version of a name in a holding; undefined if the name was not in it. `host` is the host to which the name belongs. */
export function versionOf(groups: readonly Seen[], name: string, host: string): string | undefined {
  let leavingVersion: string | undefined
  for (const { contents, hidden, leaving } of groups) {
    const version = hidden.has(host) ? undefined : contents.get(name)
    if (version !== undefined && !leaving.has(name)) return version
    leavingVersion ??= version
  }
  return leavingVersion
}
