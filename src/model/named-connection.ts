/** Finds the connection that a caller names. */
import { suggestion } from './edit-distance.ts'
import { nameOfNode } from './proxy.ts'

interface Named {
  readonly connectionId: string
  readonly nodeId: string
}

/** The maximum number of candidates that a message names. */
const mostCandidates = 10

/** Finds a connection by its id; otherwise by node id, or by proxy name `<pod>.<namespace>`. */
export function findExactly<C extends Named>(connections: readonly C[], named: string): C | undefined {
  return (
    connections.find(({ connectionId }) => connectionId === named) ??
    connections.find(({ nodeId }) => nodeId === named || nodeId.split('~')[2] === named)
  )
}

/** How a text names a proxy, the closest first: by the name of its pod or by its address, by a part of its name, by a part of its node id. */
const likenesses: readonly ((nodeId: string, named: string) => boolean)[] = [
  (nodeId, named) => nodeId.split('~').includes(named) || nameOfNode(nodeId).split('.')[0] === named,
  (nodeId, named) => nameOfNode(nodeId).includes(named),
  (nodeId, named) => nodeId.includes(named),
]

/**
 * Finds a connection by exact name, otherwise by a part that only one node id has. Undefined when there is none, or several, whose names are
 * the candidates. Connection ids are not matched partially, because of the number at their end.
 */
export function findConnection<C extends Named>(
  connections: readonly C[],
  named: string,
): { readonly found: C | undefined; readonly candidates: readonly string[] } {
  const exact = findExactly(connections, named)
  if (exact) return { found: exact, candidates: [] }
  for (const isLike of likenesses) {
    const alike = connections.filter(({ nodeId }) => isLike(nodeId, named))
    const nodes = [...new Set(alike.map(({ nodeId }) => nodeId))]
    if (nodes.length === 1) return { found: alike[0], candidates: [] }
    if (nodes.length > 1) return { found: undefined, candidates: nodes.map(nameOfNode).sort() }
  }
  return { found: undefined, candidates: [] }
}

/** The sentence about a part of a name that several proxies have. */
export function ambiguous(named: string, candidates: readonly string[]): string {
  const more = candidates.length > mostCandidates ? ` and ${candidates.length - mostCandidates} more` : ''
  return `${JSON.stringify(named.slice(0, 100))} may be any of ${candidates.slice(0, mostCandidates).join(', ')}${more}: give more of the name`
}

/** The clause that suggests a name of a proxy, or a beginning of names, in place of one that no proxy has; empty without one. */
export function suggestedProxy(connections: readonly Named[], named: string): string {
  const names = new Set<string>()
  for (const { nodeId } of connections) {
    const name = nameOfNode(nodeId)
    names.add(name)
    for (const { index } of name.matchAll(/[-.]/g)) names.add(name.slice(0, index))
  }
  return suggestion(named.slice(0, 100), names)
}
