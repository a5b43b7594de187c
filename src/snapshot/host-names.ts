/** A set of host names in which a wildcard lookup costs no more than the number of names it covers (plus a binary search). */
import { differingKeys, OverlaidMap } from '../model/overlaid-map.ts'
import { placeIn, withNames } from '../model/sorted-names.ts'

/** A set of host names. */
export interface HostNames {
  /** The names that a wildcard (`*`, `*.example.com`) covers. */
  covered(pattern: string): readonly string[]
}

/** An immutable set of host names. */
export class HostNameIndex implements HostNames {
  readonly #names: OverlaidMap<string, true>
  /** The names with their labels in reverse order, `com.example.a`, sorted. Made by the first wildcard lookup. */
  #reversed: readonly string[] | undefined

  private constructor(names: OverlaidMap<string, true>, turned: readonly string[] | undefined) {
    this.#names = names
    this.#reversed = turned
  }

  /** A set without names. */
  static readonly empty = new HostNameIndex(OverlaidMap.empty(), undefined)

  /** Returns the set with other names added, and without some of its own. */
  with(changes: { readonly added: readonly string[]; readonly removed: readonly string[] }): HostNameIndex {
    const { added, removed } = changes
    const names = this.#names.with(new Map([...removed.map((name) => [name, undefined] as const), ...added.map((name) => [name, true] as const)]))
    const turned = { added: added.map(reversed), removed: removed.map(reversed) }
    return new HostNameIndex(names, this.#reversed && withNames(this.#reversed, turned))
  }

  /** The names that only one of the two sets has. */
  differing(other: HostNameIndex): Iterable<string> {
    return differingKeys(other.#names, this.#names)
  }

  covered(pattern: string): readonly string[] {
    if (pattern === '*') return [...this.#names.keys()]
    if (!pattern.startsWith('*.')) return this.#names.has(pattern) ? [pattern] : []
    const prefix = `${reversed(pattern.slice(2))}.`
    const all = (this.#reversed ??= [...this.#names.keys()].map(reversed).sort())
    const found: string[] = []
    for (let at = placeIn(all, prefix); all[at]?.startsWith(prefix); at++) found.push(reversed(all[at] as string))
    return found
  }
}

const reversed = (name: string): string => name.split('.').reverse().join('.')

/** Whether a wildcard covers a name, as {@link HostNames.covered} has it. */
export const coversName = (pattern: string, name: string): boolean =>
  pattern === '*' || pattern === name || (pattern.startsWith('*.') && name.endsWith(pattern.slice(1)))
