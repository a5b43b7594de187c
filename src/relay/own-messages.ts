/** Encodes the agent's own requests on a discovery stream and decodes the responses to them (docs/agent.md, X3). */
import { fieldHead, scanFields, textField, varintField } from '../xds/slab/wire.ts'

/** A NACK's error: code and message of a `google.rpc.Status`. */
export interface Refusal {
  readonly code: number
  readonly message: string
}

/** Field numbers of `DiscoveryRequest` and `DeltaDiscoveryRequest`. */
const fields = {
  sotw: { version: 1, typeUrl: 4, nonce: 5, error: 6 },
  delta: { version: 0, typeUrl: 2, nonce: 6, error: 7 },
}

/** The fields of a response that the agent uses. */
export interface OwnResponse {
  readonly typeUrl: string
  readonly version: string
  readonly nonce: string
  /** The value of the first resource's `Any`. Undefined when there is no resource. */
  readonly resource: Buffer | undefined
}

/** The fields of a request other than its type. */
export interface OwnRequest {
  readonly version?: string
  readonly nonce?: string
  readonly error?: Refusal
}

/** Encodes a request without resource names: a wildcard subscription, an ACK, a NACK, or a health report. */
export function ownRequest(isDelta: boolean, typeUrl: string, { version = '', nonce = '', error }: OwnRequest = {}): Buffer {
  const at = isDelta ? fields.delta : fields.sotw
  const parts = [...(isDelta ? [] : [textField(at.version, version)]), textField(at.typeUrl, typeUrl), textField(at.nonce, nonce)]
  if (error) {
    const content = Buffer.concat([varintField(1, error.code), textField(2, error.message)])
    parts.push(Buffer.concat([fieldHead(at.error, content.length), content]))
  }
  return Buffer.concat(parts)
}

/** Decodes a response. Throws WireError. */
export function readOwnResponse(isDelta: boolean, message: Buffer): OwnResponse {
  const texts: Record<number, string> = {}
  let resource: Buffer | undefined
  let resourceType = ''
  for (const { field, bytes } of scanFields(message)) {
    if (!bytes) continue
    if (field === 2 && resource === undefined) {
      const any = isDelta ? fieldOf(bytes, 2) : bytes
      if (!any) continue
      resource = fieldOf(any, 2) ?? Buffer.alloc(0)
      resourceType = fieldOf(any, 1)?.toString() ?? ''
    } else if (field !== 2) texts[field] = bytes.toString()
  }
  // In delta xDS each resource has its own version, and an ACK contains none.
  return { typeUrl: texts[4] || resourceType, version: isDelta ? '' : (texts[1] ?? ''), nonce: texts[5] ?? '', resource }
}

/** Decodes the roots (PEM) of a `TrustBundle` (`protocols/proto/mesh/security/v1/trust_bundle.proto`). Throws WireError. */
export function readTrustBundle(message: Buffer): string {
  return fieldOf(message, 1)?.toString() ?? ''
}

/** Returns the last length-delimited field with a number. */
function fieldOf(message: Buffer, number: number): Buffer | undefined {
  let found: Buffer | undefined
  for (const { field, bytes } of scanFields(message)) if (field === number && bytes) found = bytes
  return found
}
