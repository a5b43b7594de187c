/** Encodes requests and decodes responses of `CreateCertificate` (`protocols/proto/mesh/v1/auth/ca.proto`). */
import { fieldHead, scanFields, textField, varintField } from '../xds/slab/wire.ts'

/** Encodes a `MeshCertificateRequest`: `csr` in PEM, and the requested lifetime in seconds. */
export function certificateRequest(csr: string, seconds: number): Buffer {
  return Buffer.concat([textField(1, csr), varintField(3, seconds)])
}

/**
 * Encodes a `MeshCertificateRequest` of the cloud's service `google.security.meshca.v1`: an id of the request, `csr` in PEM, and the
 * requested lifetime in seconds. Its response is encoded like that of a mesh authority.
 */
export function cloudCertificateRequest(id: string, csr: string, seconds: number): Buffer {
  const duration = varintField(1, seconds)
  return Buffer.concat([textField(1, id), textField(2, csr), fieldHead(3, duration.length), duration])
}

/** Decodes the certificate chain of a `MeshCertificateResponse`. Throws `WireError`. */
export function certificateChain(message: Buffer): string[] {
  const chain: string[] = []
  for (const { field, bytes } of scanFields(message)) if (field === 1 && bytes) chain.push(bytes.toString())
  return chain
}
