/** Orders for sorting and for precedence. */

/** Compares texts by code unit. */
export function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** An object with an age and a name. */
interface Dated {
  readonly createdAt: number
  readonly namespace: string
  readonly name: string
}

/** The order of precedence among objects of one kind: the oldest first, then by namespace and name. */
export function byAge(one: Dated, other: Dated): number {
  return one.createdAt - other.createdAt || compare(one.namespace, other.namespace) || compare(one.name, other.name)
}
