/** JSON Web Key Sets (RFC 7517) as text. */
import { compare } from '../model/order.ts'

/** The same set with its keys in an order that does not depend on who wrote it: equal keys are equal text. */
export function sortedKeySet(content: string): string {
  const { keys } = JSON.parse(content) as { keys: { kid?: unknown }[] }
  const text = (key: object) => JSON.stringify(Object.entries(key).sort(([one], [other]) => compare(one, other)))
  const sorted = keys.filter((key) => typeof key === 'object' && key !== null).sort((one, other) => compare(text(one), text(other)))
  return JSON.stringify({ keys: sorted.map((key) => Object.fromEntries(Object.entries(key).sort(([one], [other]) => compare(one, other)))) })
}
