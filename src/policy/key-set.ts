/** JSON Web Key Sets (RFC 7517) as text. */
import { compare } from '../model/order.ts'

/**
 * Returns a key set in canonical form: the order of keys, and of members in a key, does not depend on the source, so that equal keys give
 * equal text. Throws an Error for text that is no key set.
 */
export function sortedKeySet(content: string): string {
  const { keys } = JSON.parse(content) as { keys: readonly unknown[] }
  const members = keys.flatMap((key) =>
    typeof key === 'object' && key !== null ? [Object.entries(key).sort(([one], [other]) => compare(one, other))] : [],
  )
  const sorted = members.map((key) => ({ key, text: JSON.stringify(key) })).sort((one, other) => compare(one.text, other.text))
  return JSON.stringify({ keys: sorted.map(({ key }) => Object.fromEntries(key)) })
}
