/** A set of host names in which a wildcard lookup costs no more than the number of names it covers (plus a binary search). */
import { compare } from '../model/order.ts'

/** A set of host names. */
export interface HostNames {
  readonly size: number
  has(name: string): boolean
  /** The names that a wildcard (`*`, `*.example.com`) covers. */
  covered(pattern: string): readonly string[]
}

/** An immutable set of host names. */
export class HostNameIndex implements HostNames {
  readonly #names: ReadonlySet<string>
  /** The names with their labels in reverse order, `com.example.a`, sorted. Built by the first wildcard lookup. */
  #reversed: readonly (readonly [reversed: string, name: string])[] | undefined

  constructor(names: Iterable<string>) {
    this.#names = new Set(names)
  }

  get size(): number {
    return this.#names.size
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  covered(pattern: string): readonly string[] {
    if (pattern === '*') return [...this.#names]
    if (!pattern.startsWith('*.')) return this.#names.has(pattern) ? [pattern] : []
    const prefix = `${reversed(pattern.slice(2))}.`
    const all = (this.#reversed ??= [...this.#names].map((name) => [reversed(name), name] as const).sort(([one], [other]) => compare(one, other)))
    const found: string[] = []
    for (let at = firstFrom(all, prefix); at < all.length; at++) {
      const [key, name] = all[at] as readonly [string, string]
      if (!key.startsWith(prefix)) break
      found.push(name)
    }
    return found
  }
}

const reversed = (name: string): string => name.split('.').reverse().join('.')

function firstFrom(all: readonly (readonly [string, string])[], key: string): number {
  let [low, high] = [0, all.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare((all[middle] as readonly [string, string])[0], key) < 0) low = middle + 1
    else high = middle
  }
  return low
}
