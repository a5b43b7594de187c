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
  | 'heldClusters'
  | 'openPorts'
  | 'load'
  | 'pushAgain'
  | 'counted'
  | 'streams'
  | 'ofProxy'
  | 'explainResource'
  | 'resources'
  | 'node'
  | 'disconnect'

/** A stream of a proxy, as the certificate authority knows it. On the plaintext port it has no identities. */
export interface ConnectedProxy {
  /** Id of the proxy's node, `<type>~<address>~<name>~<domain>`. */
  readonly node: string
  readonly identities: readonly string[]
  /** The client certificate, the root of its chain, and when it expires in Unix milliseconds. Undefined without one. */
  readonly presented?: { readonly serial: string; readonly root: string; readonly notAfter: number } | undefined
}

/** The streams of the other replicas, and all replicas, this one among them; none where replicas do not ask each other. */
export interface StreamsElsewhere {
  readonly streams: readonly ConnectedProxy[]
  readonly replicas: readonly ReplicaState[]
}

/** What the other replicas have answered. */
export interface OfOthers<Value> {
  readonly answers: readonly { readonly replica: string; readonly value: Value }[]
  /** All of them, by name. */
  readonly replicas: readonly ReplicaState[]
}
