/** The orders in which things win over each other and are listed. */

/** Plain comparison of text by code unit. */
export function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** What has an age and a name. */
interface Dated {
  readonly createdAt: number
  readonly namespace: string
  readonly name: string
}

/** The order in which objects of one kind win over each other: the oldest first, then by namespace and name. */
export function byAge(one: Dated, other: Dated): number {
  return one.createdAt - other.createdAt || compare(one.namespace, other.namespace) || compare(one.name, other.name)
}
