/** Comparison of lists item by item, and maps of lists and sets. */

/** Whether two lists hold the same objects in the same order. */
export function sameItems(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one === other || (one.length === other.length && one.every((item, index) => item === other[index]))
}

/** Adds items to the list of a key. */
export function append<Key, Item>(lists: Map<Key, Item[]>, key: Key, ...items: readonly Item[]): void {
  const list = lists.get(key)
  if (list) list.push(...items)
  else lists.set(key, [...items])
}

/** Adds an item to the set of a key. */
export function addTo<Key, Item>(sets: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const set = sets.get(key)
  if (set) set.add(item)
  else sets.set(key, new Set([item]))
}
