/** What verifies client certificates, and who is connected with one. */
import type { Caller } from './identity.ts'

/**
 * To writers: from this source these roots verify client certificates from now on, and no others. Told to each writer when it is linked,
 * and when one differs; under the key `source`, so that a newer one replaces an older one.
 */
export interface TrustEvent {
  readonly type: 'TrustChanged'
  /** Name of the actor that says it. Writers join what all sources say. */
  readonly source: string
  /**
   * Roots by trust domain, as PEM, self-signed or not; the empty name stands for the trust domain of the mesh and its aliases
   * (`MeshNamesChanged`). Expired roots verify nothing.
   */
  readonly roots: Readonly<Record<string, string>>
  /**
   * Of the certificate authority: grows when it signs with another key or chain, so that writers have their serving certificates
   * signed anew. 0 of every other source, and of an authority that does not sign serving certificates.
   */
  readonly generation: number
}

/**
 * Writer to the certificate authority, for its ledger: which streams are open, and who is at their other end. When a writer and the
 * authority are linked, all that are open are told again.
 */
export type IdentityEvent =
  | {
      readonly type: 'IdentityConnected'
      /** Tells the stream from all others of the process. */
      readonly connection: string
      /** Undefined on the plaintext port, and where nobody is authenticated. */
      readonly caller: Caller | undefined
      /** Id of the proxy's node. */
      readonly node: string
    }
  | { readonly type: 'IdentityGone'; readonly connection: string }
