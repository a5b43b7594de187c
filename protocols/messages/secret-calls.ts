/** Calls to the API server about the Secrets in which the control plane keeps its state (docs/certificates.md, K8). */

/** A Secret, as far as the authority uses it. Values are in base64, as the API server has them. */
export interface KeptSecret {
  readonly name: string
  readonly type: string
  /** What others have written beside the data: an update keeps it. */
  readonly others?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly object[]
    readonly finalizers?: readonly string[]
  }
  readonly data: Readonly<Record<string, string>>
  /** The version of the whole object; empty for one that is to be created. */
  readonly resourceVersion: string
}

/** One call. An update replaces the data, and only that of the version that it names. */
export type SecretCall =
  | { readonly verb: 'get'; readonly name: string }
  | { readonly verb: 'create'; readonly secret: KeptSecret }
  | { readonly verb: 'update'; readonly secret: KeptSecret }

/**
 * The outcome of a call: the Secret as it is now; `missing`: there is none of this name; `conflict`: somebody else has created, changed or
 * removed it meanwhile; `failed`: nothing is known, and why; `mayPass`: the same call may succeed later.
 */
export type SecretOutcome =
  | { readonly outcome: 'done'; readonly secret: KeptSecret }
  | { readonly outcome: 'missing' | 'conflict' }
  | { readonly outcome: 'failed'; readonly reason: string; readonly mayPass: boolean }
