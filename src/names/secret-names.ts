/** Names of the control plane's own Secrets (docs/certificates.md, K8), with those of an installation that is replaced by this one. */

/**
 * `root` has the root that signs, in the form that users and other tools know; `formerRoot` is the same of an installation before.
 * `pluggedIn` is the user's.
 */
export const secretNames = {
  root: 'mesh-ca-secret',
  formerRoot: 'istio-ca-secret',
  state: 'mesh-ca-state',
  pluggedIn: 'cacerts',
  versions: 'mesh-version-secrets',
} as const

/** The name of the Secret of a note, such as the ledger. */
export const noteSecret = (note: string): string => `mesh-ca-${note}`

/** The types of the Secrets. `dns`: a certificate of the mesh configuration. */
export const secretTypes = { root: 'mesh.io/ca-root', state: 'mesh.io/ca-state', dns: 'mesh.io/dns-key-and-cert' } as const

/** The labels of the Secrets with the connections to other clusters, of which one with the value `true` suffices: the mesh's own and its alias. */
export const remoteSecretLabels: readonly string[] = ['mesh/multiCluster', 'istio/multiCluster']
