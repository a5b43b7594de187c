/** Sorted lists of names without duplicates, that are changed by copies. */
import { compare } from './order.ts'

/** Returns the index of a name in a sorted list, or of the first one after it. */
export function placeIn(names: readonly string[], name: string): number {
  let [low, high] = [0, names.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(names[middle] as string, name) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Returns a sorted list with one more name. The same list, if the name is in it. */
export function withName(names: readonly string[], name: string): readonly string[] {
  const place = placeIn(names, name)
  return names[place] === name ? names : names.toSpliced(place, 0, name)
}

/** Returns a sorted list without a name. The same list, if the name is not in it. */
export function withoutName(names: readonly string[], name: string): readonly string[] {
  const place = placeIn(names, name)
  return names[place] === name ? names.toSpliced(place, 1) : names
}
