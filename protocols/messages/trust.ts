/** The roots that verify client certificates, and the clients that are connected. */
import type { Caller } from './identity.ts'

/**
 * Sent to writers: replaces the roots of one source that verify client certificates. Sent to each writer when it is linked and after each
 * change, with the key `source`, so that a newer message replaces an older one in the mailbox.
 */
export interface TrustEvent {
  readonly type: 'TrustChanged'
  /** Name of the actor that sends the message. Writers use the union of the roots of all sources. */
  readonly source: string
  /**
   * Roots by trust domain, as PEM, self-signed or not. The empty name stands for the mesh's trust domain and its aliases
   * (`MeshNamesChanged`). Expired roots verify nothing.
   */
  readonly roots: Readonly<Record<string, string>>
  /** From the certificate authority: the roots in its answers, PEM, which agents are told of as well. */
  readonly announced?: string
  /**
   * From the certificate authority: increased when it signs with another key or chain, so that writers request new serving certificates. 0
   * from every other source, and from an authority that does not sign serving certificates.
   */
  readonly generation: number
}

/**
 * Writer to the certificate authority, for its ledger: a stream was opened or closed, with the identity of its client. When a writer and
 * the authority are linked, all open streams are sent again.
 */
export type IdentityEvent =
  | {
      readonly type: 'IdentityConnected'
      /** Unique among the streams of the process. */
      readonly connection: string
      /** Undefined on the plaintext port, and if authentication is off. */
      readonly caller: Caller | undefined
      /** Id of the proxy's node. */
      readonly node: string
    }
  | { readonly type: 'IdentityGone'; readonly connection: string }
