/** Encodes requests and decodes responses of `CreateCertificate` (`protocols/proto/mesh/v1/auth/ca.proto`). */
import { scanFields, textField, varintField } from '../xds/slab/wire.ts'

/** Encodes a `MeshCertificateRequest`: `csr` in PEM, and the requested lifetime in seconds. */
export function certificateRequest(csr: string, seconds: number): Buffer {
  return Buffer.concat([textField(1, csr), varintField(3, seconds)])
}

/** Decodes the certificate chain of a `MeshCertificateResponse`. Throws `WireError`. */
export function certificateChain(message: Buffer): string[] {
  const chain: string[] = []
  for (const { field, bytes } of scanFields(message)) if (field === 1 && bytes) chain.push(bytes.toString())
  return chain
}
