/**
 * Secrets of gateways: what a source keeps, what a writer asks for, and what it is told. Private keys are in these messages and in no others: they go from the source
 * that has read them to the writers that serve them, and nowhere else.
 */

/** Certificates and keys of a Secret, as PEM. */
export interface SecretMaterial {
  /** A certificate with its intermediates, and its private key; undefined where the Secret has only authorities. */
  readonly pair: { readonly chain: Uint8Array; readonly key: Uint8Array } | undefined
  /** Authorities of the other side's certificates. */
  readonly authorities: Uint8Array | undefined
}

/** When certificates are valid, in Unix milliseconds: from the latest begin to the earliest end of several. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/** A Secret that was read and checked (`v1` of the orchestrator API). It is no configuration object: those go to the push queue and to pages. */
export interface GatewaySecret {
  readonly kind: 'Secret'
  readonly namespace: string
  readonly name: string
  /** `kubernetes.io/tls` or `Opaque`. */
  readonly type: string
  /** `<file>#<document>`. */
  readonly origin: string
  readonly material: SecretMaterial
  /** Of the certificate and its intermediates, and of the authorities. */
  readonly validity: { readonly pair: Validity | undefined; readonly authorities: Validity | undefined }
}

/** Who reads secrets: the service account of routers whose identity was verified. It reads those of its own namespace. */
export interface SecretReader {
  readonly namespace: string
  readonly account: string
}

/** Writer to sources: these are wanted, for each reader by name, and no others. */
export type SecretCommand = {
  readonly type: 'SecretsWanted'
  readonly wanted: readonly { readonly reader: SecretReader; readonly names: readonly string[] }[]
}

/** Source to a writer that wants it: the secret of this name in the reader's namespace is this, or there is none that the reader may have. `at` in milliseconds of the monotonic clock. */
export type SecretEvent = {
  readonly type: 'SecretChanged'
  readonly reader: SecretReader
  readonly name: string
  readonly material: SecretMaterial | undefined
  readonly at: number
}
