/**
 * Immutable sets of resource names. Similar large sets share one base set and hold only their difference: proxies of different namespaces
 * subscribe to thousands of common resources and a few of their own.
 */

import { NameList } from './name-list.ts'

/** An immutable set of resource names. */
export interface NameSet extends Iterable<string> {
  readonly size: number
  has(name: string): boolean
}

/** A set of names stored as the difference to a base set. */
export class SimilarNames implements NameSet {
  readonly base: ReadonlySet<string>
  /** Names that the base does not have. */
  readonly plus: ReadonlySet<string>
  /** Names of the base that this set does not have. */
  readonly minus: ReadonlySet<string>

  constructor(base: ReadonlySet<string>, plus: ReadonlySet<string>, minus: ReadonlySet<string>) {
    this.base = base
    this.plus = plus
    this.minus = minus
  }

  get size(): number {
    return this.base.size + this.plus.size - this.minus.size
  }

  has(name: string): boolean {
    return this.base.has(name) ? !this.minus.has(name) : this.plus.has(name)
  }

  *[Symbol.iterator](): Generator<string> {
    for (const name of this.base) if (!this.minus.has(name)) yield name
    yield* this.plus
  }
}

/** Sets with fewer names than this are stored in full and are never a base for others. */
const minNames = 256
/** The maximum size of a difference, as a fraction of the size of the base. */
const maxDifferent = 1 / 8
/** The maximum number of base sets that new sets are compared with, the most recently used first. */
const maxBases = 8
/** The maximum length in bytes of a list of names that is kept beside its base set, for comparison with later lists. */
const longestList = 2_097_152

const noNames: ReadonlySet<string> = new Set()

/** Stores similar sets of names as differences to a few shared base sets. Base sets are held weakly. */
export class NameSets {
  #bases: WeakRef<ReadonlySet<string>>[] = []
  /** For each base, the list of name fields that it was read from. */
  #lists = new WeakMap<ReadonlySet<string>, NameList>()

  /**
   * Returns an equal set in the smallest stored form. `names` must not change afterwards. `raw` is the list of name fields that the names
   * were read from.
   */
  kept(names: ReadonlySet<string>, raw?: Buffer): NameSet {
    if (names.size < minNames) return names
    const bases = this.#alive()
    for (const base of bases) {
      const similar = differenceOf(names, base)
      if (!similar) continue
      this.#remember(base, bases)
      return similar.plus.size + similar.minus.size === 0 ? base : similar
    }
    this.#remember(names, bases)
    const list = raw && raw.length <= longestList ? NameList.of(raw, names) : undefined
    if (list) this.#lists.set(names, list)
    return names
  }

  /**
   * Returns the names of a raw list that is similar to the list of a recent base; undefined if there is no such base and the list must be
   * parsed. Throws WireError.
   */
  like(raw: Buffer): NameSet | undefined {
    const bases = this.#alive()
    for (const base of bases) {
      const most = Math.floor(base.size * maxDifferent)
      const difference = this.#lists.get(base)?.differenceIn(raw, most)
      const similar = difference && new SimilarNames(base, difference.plus, difference.minus)
      if (!similar || !isSimilar(similar)) continue
      this.#remember(base, bases)
      return similar.plus.size + similar.minus.size === 0 ? base : similar
    }
    return undefined
  }

  #alive(): ReadonlySet<string>[] {
    return this.#bases.flatMap((reference) => reference.deref() ?? [])
  }

  /** Returns the set with names added and removed. A name that is in both `add` and `remove` is added. */
  changed(from: NameSet, add: Iterable<string>, remove: Iterable<string>): NameSet {
    const { base, plus, minus } = ownBase(from)
    if (base.size < minNames) return this.kept(changedSet(from, add, remove))
    const more = new Set(plus)
    const fewer = new Set(minus)
    for (const name of remove)
      if (base.has(name)) fewer.add(name)
      else more.delete(name)
    for (const name of add)
      if (base.has(name)) fewer.delete(name)
      else more.add(name)
    const similar = new SimilarNames(base, more, fewer)
    if (more.size + fewer.size === 0) return base
    return isSimilar(similar) ? similar : this.kept(new Set(similar))
  }

  #remember(base: ReadonlySet<string>, bases: readonly ReadonlySet<string>[]): void {
    const others = bases.filter((other) => other !== base)
    for (const last of others.splice(maxBases - 1)) this.#lists.delete(last)
    this.#bases = [base, ...others].map((one) => new WeakRef(one))
  }
}

function changedSet(from: Iterable<string>, add: Iterable<string>, remove: Iterable<string>): Set<string> {
  const names = new Set(from)
  for (const name of remove) names.delete(name)
  for (const name of add) names.add(name)
  return names
}

const isSimilar = ({ base, plus, minus }: SimilarNames): boolean => plus.size + minus.size <= base.size * maxDifferent

/** Returns the names as a difference to a base; undefined if the difference is too large. */
function differenceOf(names: ReadonlySet<string>, base: ReadonlySet<string>): SimilarNames | undefined {
  const most = base.size * maxDifferent
  if (Math.abs(names.size - base.size) > most) return undefined
  const plus = new Set<string>()
  for (const name of names) if (!base.has(name) && plus.add(name).size > most) return undefined
  const minus = new Set<string>()
  const lost = base.size + plus.size - names.size
  if (lost > 0) for (const name of base) if (!names.has(name) && minus.add(name).size === lost) break
  const similar = new SimilarNames(base, plus, minus)
  return isSimilar(similar) ? similar : undefined
}

/** Returns a set as the difference to its base. A set that is stored in full is its own base. */
const ownBase = (names: NameSet): SimilarNames =>
  names instanceof SimilarNames ? names : new SimilarNames(names as ReadonlySet<string>, noNames, noNames)

/** Yields the names of one set that the other does not have. Takes time in proportion to the differences if both sets share a base. */
export function* onlyIn(one: NameSet, other: NameSet): Generator<string> {
  const { base, plus } = ownBase(one)
  const { base: otherBase, minus } = ownBase(other)
  for (const candidates of base === otherBase ? [plus, minus] : [one])
    for (const name of candidates) if (one.has(name) && !other.has(name)) yield name
}

/** Whether two sets have the same names. */
export function sameSet(one: NameSet, other: NameSet): boolean {
  return one === other || (one.size === other.size && onlyIn(one, other).next().done === true)
}
