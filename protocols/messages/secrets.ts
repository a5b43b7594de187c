/**
 * Secrets of gateways: as a source holds them, as a writer requests them, and as they are sent to a writer. No other messages contain
 * private keys: these go from the source that has read them to the writers that serve them, and nowhere else.
 */

/** Certificates and keys of a Secret, as PEM. */
export interface SecretMaterial {
  /** A certificate with its intermediates, and its private key; undefined if the Secret only contains certificate authorities. */
  readonly pair: { readonly chain: Uint8Array; readonly key: Uint8Array } | undefined
  /** The certificate authorities that verify peers. */
  readonly authorities: Uint8Array | undefined
}

/** The validity of certificates, in Unix milliseconds; of several, from the latest start to the earliest end. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/**
 * A Secret that was read and checked (`v1` of the orchestrator API). It is not a configuration object, since those are sent to the push
 * queue and shown on pages.
 */
export interface GatewaySecret {
  readonly kind: 'Secret'
  readonly namespace: string
  readonly name: string
  /** `kubernetes.io/tls` or `Opaque`. */
  readonly type: string
  /** Where it stands in its source, for people: file and document. */
  readonly place: string
  /**
   * The service accounts that its annotation names, without their namespace, which is that of the Secret; empty if the annotation is not
   * valid, undefined without one.
   */
  readonly serviceAccounts: readonly string[] | undefined
  readonly material: SecretMaterial
  /** The validity of the certificate with its intermediates, and of the certificate authorities. */
  readonly validity: { readonly pair: Validity | undefined; readonly authorities: Validity | undefined }
}

/** A reader of secrets: a service account of routers whose identity was verified. It may read Secrets of its own namespace, in its own cluster. */
export interface SecretReader {
  /** The cluster that vouches for it, whose Secrets it may read; undefined: that of this process. */
  readonly cluster?: string
  readonly namespace: string
  readonly account: string
}

/** Writer to sources: replaces the set of Secrets that the writer needs, by reader and name. */
export type SecretCommand = {
  readonly type: 'SecretsWanted'
  readonly wanted: readonly { readonly reader: SecretReader; readonly names: readonly string[] }[]
}

/**
 * Source to a writer that requested the Secret: its material, or undefined if there is none that the reader may read; `isRefused` if there
 * is one that it may not read, which the source reports. `at` is in milliseconds of the monotonic clock.
 */
export type SecretEvent = {
  readonly type: 'SecretChanged'
  readonly reader: SecretReader
  readonly name: string
  readonly material: SecretMaterial | undefined
  readonly isRefused?: true
  readonly at: number
}
