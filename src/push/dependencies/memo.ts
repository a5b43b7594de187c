/**
 * A cache of values by the objects that they were made from. A value is made again only when one of the objects it was given is another
 * object, or when something that it read has changed. Snapshots keep the identity of objects that did not change, so a value is made again
 * exactly when it could differ.
 *
 * An entry is evicted with the object it was made from, and with the resource groups that use it. The traits of the proxies that a value
 * was made for are the name of a space, and a space is removed with the last group that used it, because clients choose their traits.
 */
import type { Cell, Dependencies } from './dependencies.ts'

interface Kept {
  readonly variant: string
  readonly inputs: readonly unknown[]
  readonly cell: Cell
}

/**
 * The variants of a subject: a list of up to eight, or a map by name for more. Most subjects have one or two variants, and a list takes a
 * third of the memory.
 */
type Variants = readonly Kept[] | Map<string, Kept>

type Cells = WeakMap<object, Variants>

/** The values made for one set of traits. */
interface Space {
  readonly name: string
  /** Cells by subject, and by modifier and subject for values with a modifier. An entry lives no longer than its subject or its modifier. */
  readonly cells: Cells
  readonly under: WeakMap<object, Cells>
  /** The resource groups that use it. */
  readonly users: Set<string>
}

/** A cache of made values. */
export class Memo {
  readonly #record: Pick<Dependencies<never>, 'cell' | 'valueIn'>
  readonly #spaces = new Map<string, Space>()
  readonly #used = new Map<string, Set<Space>>()
  readonly #numbers = new WeakMap<object, number>()
  #numbered = 0
  /** Counters since the start: values made, and values found in the cache. */
  made = 0
  found = 0
  /** The resource group being built, which is recorded as a user of the spaces. */
  user = ''

  constructor(record: Pick<Dependencies<never>, 'cell' | 'valueIn'>) {
    this.#record = record
  }

  /** The number of spaces in use. Tests of memory check that it falls when their users are released. */
  get spaces(): number {
    return this.#spaces.size
  }

  /**
   * Returns the value for a subject under the name `variant`. `modifier` is the DestinationRule or VirtualService that applies to it, if any.
   * The cached value is returned if it was made from the same `inputs`, nothing that it read has changed, and `usable` accepts it. Otherwise
   * `make` makes a new one. Two values of one subject need different variants or spaces. Everything that clients choose belongs into the
   * name of the space. A value is kept as long as its subject; when a subject has many variants, those that are outdated or that nothing has
   * read are removed.
   */
  get<T>(
    space: string,
    [subject, modifier]: readonly [subject: object, modifier?: object | undefined],
    variant: string,
    inputs: readonly unknown[],
    make: () => T,
    usable: (made: T) => boolean = () => true,
  ): T {
    const cells = cellsUnder(this.#space(space), modifier)
    const variants = cells.get(subject) ?? none
    const kept = find(variants, variant)
    if (kept?.cell.isCurrent && sameInputs(kept.inputs, inputs)) {
      const found = this.#record.valueIn(kept.cell) as T
      if (usable(found)) {
        this.found++
        return found
      }
    }
    const cell = this.#record.cell(make)
    this.made++
    // `make` may have added other variants of the subject. A list that was spread into another has room for 17 items, a copy for its own.
    cells.set(subject, withKept(cells.get(subject) ?? none, { variant, inputs: inputs.slice(), cell }))
    return this.#record.valueIn(cell) as T
  }

  /**
   * Returns a text that is equal for the same objects (or undefined) in the same order. It distinguishes variants that exist at the same
   * time and are each made from inputs of their own.
   */
  identityOf(objects: readonly (object | undefined)[]): string {
    return objects.map((object) => (object ? this.#numberOf(object) : 0)).join()
  }

  #numberOf(object: object): number {
    let number = this.#numbers.get(object)
    if (number === undefined) this.#numbers.set(object, (number = ++this.#numbered))
    return number
  }

  /** Removes a user, and the spaces that no other uses. */
  release(user: string): void {
    for (const space of this.#used.get(user) ?? []) {
      space.users.delete(user)
      if (space.users.size === 0) this.#spaces.delete(space.name)
    }
    this.#used.delete(user)
  }

  #space(name: string): Space {
    let space = this.#spaces.get(name)
    if (!space) this.#spaces.set(name, (space = { name, cells: new WeakMap(), under: new WeakMap(), users: new Set() }))
    if (space.users.has(this.user)) return space
    space.users.add(this.user)
    const used = this.#used.get(this.user)
    if (used) used.add(space)
    else this.#used.set(this.user, new Set([space]))
    return space
  }
}

const none: readonly Kept[] = []
/**
 * The maximum number of variants in a list. Outdated and unread variants are removed when a list would exceed this number, and each time
 * the number of variants in a map has doubled.
 */
const fewVariants = 8

const find = (variants: Variants, name: string): Kept | undefined =>
  variants instanceof Map ? variants.get(name) : variants.find(({ variant }) => variant === name)

/** Returns the variants with one added or replaced. A list is copied, a map is changed in place. */
function withKept(variants: Variants, kept: Kept): Variants {
  const { variant } = kept
  if (variants instanceof Map) {
    const { size } = variants
    if (size >= fewVariants && (size & (size - 1)) === 0) for (const [name, { cell }] of variants) if (!cell.isCurrent) variants.delete(name)
    return variants.set(variant, kept)
  }
  if (find(variants, variant)) return variants.map((other) => (other.variant === variant ? kept : other))
  if (variants.length < fewVariants) return variants.concat([kept])
  const current = variants.filter(({ cell }) => cell.isCurrent).concat([kept])
  return current.length <= fewVariants ? current : new Map(current.map((each) => [each.variant, each]))
}

/** Returns the cells of a space for values with a modifier, or without one. */
function cellsUnder({ cells, under }: Space, modifier: object | undefined): Cells {
  if (!modifier) return cells
  let below = under.get(modifier)
  if (!below) under.set(modifier, (below = new WeakMap()))
  return below
}

function sameInputs(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
