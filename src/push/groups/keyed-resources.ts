/** Groups that are made key by key: by host, or by listener. Only the resources of keys of which something has changed are made again. */
import { sameItems } from '../../model/lists.ts'
import type { Outcome } from '../../xds/draft.ts'
import type { Collection, Dependencies } from '../dependencies/dependencies.ts'
import { type HostList, listed, noHosts } from '../host-list.ts'
import type { Built, GroupMaker } from './making.ts'

/** The resources of a group by key, each with a record of what was read to make it. */
interface Kept {
  readonly cells: Collection<readonly Outcome[]>
  /** The inputs that are not recorded as reads. */
  readonly given: readonly unknown[]
  /** Those that the group has. */
  readonly stored: Map<string, readonly Outcome[]>
  /** The keys that it was made of; undefined until it was. */
  keys: HostList | undefined
}

type Make = (key: string) => readonly Outcome[]
type Rest = (of: Make) => readonly Outcome[]

/** The key of what is made every time. It is no host and no listener. */
const restKey = ''

/** The resources of groups by key. */
export class KeyedResources {
  readonly #record: Pick<Dependencies<never>, 'collection'>
  readonly #kept = new Map<string, Kept>()

  constructor(record: Pick<Dependencies<never>, 'collection'>) {
    this.#record = record
  }

  /**
   * Makes a group of these keys anew, or the part of it that changed since it was made last. `ofKey` makes the resources of a key, `rest`
   * those that are made every time, for which it is told what the group has of a key.
   */
  make({ id, given }: Pick<GroupMaker, 'id' | 'given'>, keys: readonly string[], ofKey: Make, rest?: Rest): Built {
    const known = this.#kept.get(id)
    const group =
      known && sameItems(known.given, given)
        ? known
        : { cells: this.#record.collection<readonly Outcome[]>(), given, stored: new Map(), keys: undefined }
    // If this fails, the next attempt begins anew.
    this.#kept.delete(id)
    try {
      return this.#changed(id, group, keys, ofKey, rest)
    } catch (error) {
      group.cells.keep(new Set())
      throw error
    }
  }

  /** Removes a group. */
  forget(id: string): void {
    this.#kept.delete(id)
  }

  /** Makes the resources of the keys that are new in a group, and of those of which something that was read has changed. */
  #changed(id: string, group: Kept, now: readonly string[], ofKey: Make, rest: Rest | undefined): Built {
    const { cells, stored, given } = group
    const relisted = new Set<string>()
    const keys = listed(now, group.keys ?? noHosts, relisted)
    const redone = [...new Set([...relisted, ...cells.outdated])].filter((key) => keys.set.has(key))
    const left = [...relisted].filter((key) => !keys.set.has(key))
    const made = new Map(redone.map((key) => [key, cells.get(key, () => ofKey(key)).value]))
    if (rest) {
      made.set(
        restKey,
        rest((key) => made.get(key) ?? (keys.set.has(key) ? stored.get(key) : undefined) ?? []),
      )
      redone.push(restKey)
    }
    cells.drop(left)
    cells.read()
    const outcomes = [...made.values()].flat()
    const there = new Set(outcomes.map(nameOf))
    const before = [...redone, ...left].flatMap((key) => (stored.get(key) ?? []).map(nameOf))
    const finish = () => {
      for (const [key, of] of made) stored.set(key, of)
      for (const key of left) stored.delete(key)
      this.#kept.set(id, { cells, given, stored, keys })
    }
    if (!group.keys) return { outcomes, stored: finish }
    const remade = new Set([...redone, ...left, ...before, ...there])
    // A patch that cannot be applied is a fault of its EnvoyFilter, which several keys report.
    const patches = new Set([...outcomes, ...[...redone, ...left].flatMap((key) => stored.get(key) ?? [])].filter(isPatchProblem).map(nameOf))
    if (patches.size > 0)
      for (const [key, of] of stored)
        if (!made.has(key) && !left.includes(key)) outcomes.push(...of.filter((one) => isPatchProblem(one) && patches.has(nameOf(one))))
    return { outcomes, isPart: true, gone: before.filter((name) => !there.has(name)), remade, stored: finish }
  }
}

/** The resource that an outcome is about. */
export const nameOf = (outcome: Outcome): string =>
  'slices' in outcome ? outcome.name : 'problem' in outcome ? outcome.problem.resource : outcome.conflict.listener

const isPatchProblem = (outcome: Outcome): boolean => 'problem' in outcome && outcome.problem.type === 'patch'
