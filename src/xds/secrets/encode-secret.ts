/**
 * Encodes `envoy.extensions.transport_sockets.tls.v3.Secret` as elements of `resources` in a response, without generated code, which
 * writers do not load.
 */
import { elementHead, fieldHead, textField } from '../slab/wire.ts'
import { secretType } from '../type-urls.ts'

/** Numbers of the fields that are written. */
const fields = {
  secret: { name: 1, tlsCertificate: 2, validationContext: 4 },
  tlsCertificate: { certificateChain: 1, privateKey: 2 },
  validationContext: { trustedCa: 1, crl: 7 },
  dataSource: { inlineBytes: 2 },
} as const

/** Encodes a certificate chain and its private key, both PEM, as a TLS certificate. */
export function encodePair(name: string, { chain, key }: { readonly chain: Uint8Array; readonly key: Uint8Array }): Buffer {
  const { certificateChain, privateKey } = fields.tlsCertificate
  return encode(name, fields.secret.tlsCertificate, [...inline(certificateChain, chain), ...inline(privateKey, key)])
}

/** Encodes the certificates of authorities, and their revocation lists if there are any, all in PEM, as a validation context. */
export function encodeAuthorities(name: string, authorities: Uint8Array, revocations?: Uint8Array): Buffer {
  const { trustedCa, crl } = fields.validationContext
  return encode(name, fields.secret.validationContext, [...inline(trustedCa, authorities), ...(revocations ? inline(crl, revocations) : [])])
}

/** Returns a field with an inline data source, as heads and content, so that the content is copied only once, at the end. */
function inline(field: number, bytes: Uint8Array): Uint8Array[] {
  const head = fieldHead(fields.dataSource.inlineBytes, bytes.length)
  return [fieldHead(field, head.length + bytes.length), head, bytes]
}

function encode(name: string, field: number, content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  const nameField = textField(fields.secret.name, name)
  const head = fieldHead(field, length)
  const parts = [elementHead(secretType, nameField.length + head.length + length), nameField, head, ...content]
  // A buffer outside the pool of Node, so that it can be cleared without affecting other data.
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
