/** The cluster that a user means on the command line. */

/** Which cluster is meant. */
export interface UserCluster {
  /** A file with contexts, clusters and users; empty: as the orchestrator's command line finds it. */
  readonly kubeconfig: string
  /** The context in it; empty: the current one. */
  readonly context: string
}

/** Whether flags mean a cluster. */
export const meansUserCluster = ({ cluster, kubeconfig, context }: UserCluster & { readonly cluster: boolean }): boolean =>
  cluster || kubeconfig !== '' || context !== ''
