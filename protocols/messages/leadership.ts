/** What only one replica of the service may do at a time. */

/** What only one replica may do. */
export type Duty =
  /** The ConfigMap with the root certificates in each namespace. */
  | 'namespaces'
  /** The status of Ingresses. */
  | 'ingress'
  /** The status of mesh objects. */
  | 'status'
  /** What analyzers say of mesh objects. */
  | 'analysis'
  /** The configuration of the validating webhook. */
  | 'validation'
  /** The Secrets of `certificates` of the mesh configuration. */
  | 'certificates'
