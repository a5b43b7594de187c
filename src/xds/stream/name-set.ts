/** Sets of names that are alike hold what they have in common once: proxies of different namespaces name thousands of common resources and a few of their own. */

import { NameList } from './name-list.ts'

/** A set of names that does not change. */
export interface NameSet extends Iterable<string> {
  readonly size: number
  has(name: string): boolean
}

/** The names of another set but for a few. */
export class SimilarNames implements NameSet {
  readonly base: ReadonlySet<string>
  /** Names that are not in the base. */
  readonly plus: ReadonlySet<string>
  /** Names of the base that are not in this one. */
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

/** Sets with fewer names are held each by itself. */
const leastNames = 256
/** A set is held as the difference to another where they have seven of eight names in common. */
const mostDifferent = 1 / 8
/** Sets that others may be like. One that was of use lately comes first. */
const mostBases = 8
/** Lists of more bytes are not kept beside their sets. */
const longestList = 2_097_152

const noNames: ReadonlySet<string> = new Set()

/** Finds sets that are alike. */
export class NameSets {
  #bases: WeakRef<ReadonlySet<string>>[] = []
  /** The lists that bases were read from. */
  #lists = new WeakMap<ReadonlySet<string>, NameList>()

  /** The same names, in the least memory; the set is not to change any more. `raw` is the list that it was read from. */
  kept(names: ReadonlySet<string>, raw?: Buffer): NameSet {
    if (names.size < leastNames) return names
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

  /** The names of a list that is like one of the last; undefined where it is to be read. Throws WireError. */
  like(raw: Buffer): NameSet | undefined {
    const bases = this.#alive()
    for (const base of bases) {
      const most = Math.floor(base.size * mostDifferent)
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

  /** The names with some added and some removed; names that are both are added. */
  changed(from: NameSet, add: Iterable<string>, remove: Iterable<string>): NameSet {
    const { base, plus, minus } = ownBase(from)
    if (base.size < leastNames) return this.kept(changedSet(from, add, remove))
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
    for (const last of others.splice(mostBases - 1)) this.#lists.delete(last)
    this.#bases = [base, ...others].map((one) => new WeakRef(one))
  }
}

function changedSet(from: Iterable<string>, add: Iterable<string>, remove: Iterable<string>): Set<string> {
  const names = new Set(from)
  for (const name of remove) names.delete(name)
  for (const name of add) names.add(name)
  return names
}

const isSimilar = ({ base, plus, minus }: SimilarNames): boolean => plus.size + minus.size <= base.size * mostDifferent

/** The names as a difference to a base, unless that is too large. */
function differenceOf(names: ReadonlySet<string>, base: ReadonlySet<string>): SimilarNames | undefined {
  const most = base.size * mostDifferent
  if (Math.abs(names.size - base.size) > most) return undefined
  const plus = new Set<string>()
  for (const name of names) if (!base.has(name) && plus.add(name).size > most) return undefined
  const minus = new Set<string>()
  const lost = base.size + plus.size - names.size
  if (lost > 0) for (const name of base) if (!names.has(name) && minus.add(name).size === lost) break
  const similar = new SimilarNames(base, plus, minus)
  return isSimilar(similar) ? similar : undefined
}

/** A set as the difference to its base; one that is held by itself is its own base. */
const ownBase = (names: NameSet): SimilarNames =>
  names instanceof SimilarNames ? names : new SimilarNames(names as ReadonlySet<string>, noNames, noNames)

/** Names of one set that are not in another: in the time of what differs, where the two are like the same set. */
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
