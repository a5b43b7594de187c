/** Reviews of the API server: what a webhook is asked, and what it answers. */

/** What is reviewed (`AdmissionReview.request`). */
export interface AdmissionRequest {
  /** Names the request; the answer has the same. */
  readonly uid: string
  /** The kind of the object, as the webhook is configured to get it. */
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  /** The resource of the request, with its plural name. */
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string }
  readonly subResource: string
  /** Empty where the server has yet to make a name. */
  readonly name: string
  /** Empty for objects without a namespace. */
  readonly namespace: string
  /** `CREATE`, `UPDATE`, `DELETE` or `CONNECT`. */
  readonly operation: string
  /** The name of the user who made the request. */
  readonly user: string
  readonly isDryRun: boolean
  /** The object as it would be stored; undefined with `DELETE`. */
  readonly object: unknown
  /** The object as it is stored, with `UPDATE` and `DELETE`. */
  readonly oldObject: unknown
}

/** One operation of a JSON Patch (RFC 6902). */
export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
  readonly path: string
  readonly from?: string
  readonly value?: unknown
}

/** The answer to a review. */
export interface AdmissionAnswer {
  readonly allowed: boolean
  /** Why the request is denied, for its user. */
  readonly message?: string
  /** The HTTP status that the user gets when the request is denied; by default 403. */
  readonly code?: number
  /** What the user is told although the request is allowed. */
  readonly warnings?: readonly string[]
  /** What is changed about the object; none or empty: nothing. */
  readonly patch?: readonly PatchOperation[]
}

/** A review that was received: asked of the actor `webhooks` by the main thread, whose pages receive some (docs/operation.md, W1). */
export interface ReviewCall {
  /** The path of the URL, which says what the webhook does and may have parameters. */
  readonly path: string
  /** An AdmissionReview as JSON. */
  readonly body: Uint8Array
}

/** The answer to {@link ReviewCall}. */
export interface ReviewReply {
  /** The HTTP status. */
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Where webhooks are served over TLS. */
export interface WebhookPort {
  readonly host: string
  readonly port: number
  /** Hosts for which a certificate is requested from the certificate authority of this process; undefined: files are read. */
  readonly ownHosts: readonly string[] | undefined
}

/** Configuration of the actor `webhooks`. */
export interface WebhooksConfig {
  /** A `Features` value. */
  readonly features: object
  /** Undefined: reviews come from the main thread only. */
  readonly port: WebhookPort | undefined
  /** Whether there is a cluster, which may have the configuration of injection. */
  readonly hasCluster: boolean
  /** The name of the ValidatingWebhookConfiguration of this control plane. */
  readonly configuration: string
  /** Maximum number of connections. */
  readonly connections: number
}
