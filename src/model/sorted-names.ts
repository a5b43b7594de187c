/** Sorted lists of names without duplicates. They are changed by copies, at the cost of copying for a few changes. */
import { compare } from './order.ts'

type Order = (one: string, other: string) => number

/** Returns the index of a name in a sorted list, or of the first one after it. */
export function placeIn(names: readonly string[], name: string, order: Order = compare): number {
  let [low, high] = [0, names.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (order(names[middle] as string, name) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Returns a sorted list without some names, and with others that are not in it. `before` is the order of the list, `now` that of the result. */
export function withNames(
  names: readonly string[],
  { removed = [], added = [] }: { readonly removed?: readonly string[]; readonly added?: readonly string[] },
  before: Order = compare,
  now: Order = before,
): readonly string[] {
  if (removed.length + added.length === 0) return names
  const cut = new Set(removed.map((name) => placeIn(names, name, before)))
  const kept = cut.size === 0 ? names : names.filter((_, index) => !cut.has(index))
  if (added.length === 1) return kept.toSpliced(placeIn(kept, added[0] as string, now), 0, added[0] as string)
  return added.length === 0 ? kept : [...kept, ...added].sort(now)
}
