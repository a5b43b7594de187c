/** The ConfigMap with the root certificates in each namespace: what the watcher of a cluster sees of it, and what is to be written. */

/** What a namespace has. */
export interface NamespaceRoots {
  /** The `uid` of the namespace: another one of the same name is another namespace. */
  readonly uid: string
  /** Whether objects can be made in it: it is not being deleted. */
  readonly isActive: boolean
  /** The digest of what its ConfigMap holds; undefined: it has none. */
  readonly held: string | undefined
}

/** Watcher of a cluster to the keeper of root certificates: a namespace was added or changed, or its ConfigMap was; undefined: it is gone. */
export interface NamespaceRootsEvent {
  readonly type: 'NamespaceRootsChanged'
  /** The other cluster whose namespace it is; undefined: the own one. */
  readonly cluster?: string | undefined
  readonly namespace: string
  readonly state: NamespaceRoots | undefined
}

/** Asks the main thread to write the ConfigMap of a namespace, as the leader of a term. */
export interface RootsWrite {
  readonly term: number
  /** The other cluster whose namespace it is; undefined: the own one. */
  readonly cluster?: string | undefined
  readonly namespace: string
  /** The certificates, PEM. */
  readonly roots: string
}

/** What came of it. */
export type RootsWriteOutcome =
  | { readonly outcome: 'written' }
  /** The namespace is gone or being deleted. */
  | { readonly outcome: 'gone' }
  /** The term is over. */
  | { readonly outcome: 'lost' }
  /** `isCommon`: the reason concerns every namespace: the role forbids it, or the server cannot be reached. */
  | { readonly outcome: 'failed'; readonly reason: string; readonly isCommon: boolean }

/** Configuration of the keeper of root certificates. */
export interface RootCertificatesConfig {
  readonly domain: string
}
