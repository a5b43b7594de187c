/**
 * Remembers what was made from what. A thing is made again only when one of the objects that it was given is another object, or when something
 * that it read is; since snapshots keep the identity of what did not change, that is exactly when it could differ.
 *
 * What is remembered goes with what it was made from, and with those that use it: the traits of proxies that a thing was made
 * for are the name of a space, and a space goes with the last group of resources that used it. Clients choose their traits.
 */
import type { Cell, Dependencies } from './dependencies.ts'

interface Kept {
  readonly inputs: readonly unknown[]
  readonly cell: Cell<unknown>
}

type Cells = WeakMap<object, Map<string, Kept>>

/** What was made for one set of traits. */
interface Space {
  readonly name: string
  /** Cells by their subject, and by subject below the rule that they were made under: they go with either. */
  readonly cells: Cells
  readonly under: WeakMap<object, Cells>
  readonly owners: Set<string>
}

/** A memory of made things. */
export class Memo {
  readonly #record: Pick<Dependencies<never>, 'cell'>
  readonly #spaces = new Map<string, Space>()
  readonly #owned = new Map<string, Set<Space>>()
  readonly #numbers = new WeakMap<object, number>()
  #numbered = 0
  /** Things made, and things found, since the start. */
  made = 0
  found = 0
  /** Who uses what is asked for now: the group of resources that is being built. */
  owner = ''

  constructor(record: Pick<Dependencies<never>, 'cell'>) {
    this.#record = record
  }

  /** Spaces in use. */
  get spaces(): number {
    return this.#spaces.size
  }

  /**
   * The `variant` of `subject` under a rule, made by `make` unless it is there, `usable`, and nothing it was made from has changed: neither the
   * subject, the rule and the inputs that it was given, nor what it read.
   * What clients choose belongs into the name of the space; a variant stays as long as its subject, or until there are many and nobody reads it any more.
   */
  get<T>(
    space: string,
    [subject, rule]: readonly [subject: object, rule?: object | undefined],
    variant: string,
    inputs: readonly unknown[],
    make: () => T,
    usable: (made: T) => boolean = () => true,
  ): T {
    const variants = variantsOf(this.#space(space), subject, rule)
    const kept = variants.get(variant)
    if (kept?.cell.isCurrent && sameInputs(kept.inputs, inputs)) {
      const found = kept.cell.read() as T
      if (usable(found)) {
        this.found++
        return found
      }
    }
    const cell = this.#record.cell(make)
    this.made++
    if (isFull(variants)) for (const [other, { cell }] of variants) if (!cell.isCurrent) variants.delete(other)
    variants.set(variant, { inputs, cell })
    return cell.read()
  }

  /** Equal for the same objects, or undefined, in the same order: for variants that several have at a time, each made from inputs of its own. */
  identityOf(objects: readonly (object | undefined)[]): string {
    return objects.map((object) => (object ? this.#numberOf(object) : 0)).join()
  }

  #numberOf(object: object): number {
    let number = this.#numbers.get(object)
    if (number === undefined) this.#numbers.set(object, (number = ++this.#numbered))
    return number
  }

  /** An owner is gone, and with it what nobody else uses. */
  release(owner: string): void {
    for (const space of this.#owned.get(owner) ?? []) {
      space.owners.delete(owner)
      if (space.owners.size === 0) this.#spaces.delete(space.name)
    }
    this.#owned.delete(owner)
  }

  #space(name: string): Space {
    let space = this.#spaces.get(name)
    if (!space) this.#spaces.set(name, (space = { name, cells: new WeakMap(), under: new WeakMap(), owners: new Set() }))
    if (space.owners.has(this.owner)) return space
    space.owners.add(this.owner)
    const owned = this.#owned.get(this.owner)
    if (owned) owned.add(space)
    else this.#owned.set(this.owner, new Set([space]))
    return space
  }
}

/** Whether it is time to look for variants that are outdated, or that nobody reads any more: at eight, and whenever there are twice as many. */
const isFull = ({ size }: ReadonlyMap<string, Kept>): boolean => size >= fewVariants && (size & (size - 1)) === 0
const fewVariants = 8

function variantsOf({ cells, under }: Space, subject: object, rule: object | undefined): Map<string, Kept> {
  let below = cells
  if (rule) {
    below = under.get(rule) ?? new WeakMap()
    under.set(rule, below)
  }
  let variants = below.get(subject)
  if (!variants) below.set(subject, (variants = new Map()))
  return variants
}

function sameInputs(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
