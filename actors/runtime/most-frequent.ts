/** Bounds the values of a label whose text clients choose. */
import { compare } from '../../src/model/order.ts'

/** The maximum number of versions of proxies with a label value of their own. */
const maxVersions = 20

/** Returns the most frequent names with their numbers, of equally frequent ones the first by name, and all others together as `other`. */
export function mostFrequent(names: Iterable<string>, most = maxVersions): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const sorted = [...counts].sort(([one, times], [other, otherTimes]) => otherTimes - times || compare(one, other))
  const rest = sorted.slice(most).reduce((sum, [, times]) => sum + times, 0)
  return new Map([...sorted.slice(0, most), ...(rest > 0 ? [['other', rest] as const] : [])])
}
