/** What replicas of discovery ask each other (docs/operation.md, A1 to A6), and which of them have answered. */

/** A replica of discovery, and whether its part is in an answer. */
export interface ReplicaState {
  readonly name: string
  readonly answered: boolean
  /** Why its part is missing; empty: it is not. */
  readonly reason: string
}

/** The questions of replicas. The last five are about one proxy of the replica that is asked. */
export type ReplicaQuestion =
  | 'connections'
  | 'proxies'
  | 'slow'
  | 'exceeded'
  | 'nodes'
  | 'shares'
  | 'instances'
  | 'distribution'
  | 'pushes'
  | 'proxyEvents'
  | 'faults'
  | 'conflicts'
  | 'withoutEffect'
  | 'clusters'
  | 'load'
  | 'pushAgain'
  | 'counted'
  | 'ofProxy'
  | 'explainResource'
  | 'resources'
  | 'node'
  | 'disconnect'

/** What the other replicas have answered. */
export interface OfOthers<Value> {
  readonly answers: readonly { readonly replica: string; readonly value: Value }[]
  /** All of them, by name. */
  readonly replicas: readonly ReplicaState[]
}
