/**
 * Remembers what was made from what. A thing is made again only when one of the objects it was made from is another
 * object; since snapshots keep the identity of what did not change, that is exactly when it could differ. Makers get their
 * inputs through here and nowhere else, so an input cannot be forgotten. Entries go when their first input goes.
 */

interface Cell {
  readonly inputs: readonly unknown[]
  readonly made: unknown
}

/** A memory of made things. */
export class Memo {
  readonly #cells = new WeakMap<object, Map<string, Cell>>()
  /** Things made, and things found, since the start. */
  made = 0
  found = 0

  /** The `variant` of `subject`, made by `make` unless it is there, `usable`, and nothing it was made from has changed. */
  get<T>(subject: object, variant: string, inputs: readonly unknown[], make: () => T, usable: (made: T) => boolean = () => true): T {
    let variants = this.#cells.get(subject)
    if (!variants) this.#cells.set(subject, (variants = new Map()))
    const cell = variants.get(variant)
    if (cell && sameInputs(cell.inputs, inputs) && usable(cell.made as T)) {
      this.found++
      return cell.made as T
    }
    const made = make()
    this.made++
    variants.set(variant, { inputs, made })
    return made
  }
}

function sameInputs(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
