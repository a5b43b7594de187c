/** Finds the connection that a caller names. */

interface Named {
  readonly connectionId: string
  readonly nodeId: string
}

/** Finds a connection by its id; otherwise by node id, or by proxy name `<pod>.<namespace>`. */
export function findExactly<C extends Named>(connections: readonly C[], named: string): C | undefined {
  return (
    connections.find(({ connectionId }) => connectionId === named) ??
    connections.find(({ nodeId }) => nodeId === named || nodeId.split('~')[2] === named)
  )
}

/**
 * Finds a connection by exact name; otherwise the first whose node id contains the name. Connection ids are not matched partially,
 * because of the number at their end.
 */
export function findConnection<C extends Named>(connections: readonly C[], named: string): C | undefined {
  return findExactly(connections, named) ?? connections.find(({ nodeId }) => nodeId.includes(named))
}
