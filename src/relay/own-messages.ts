/** The agent's own requests on a stream of discovery, and the responses to them (docs/agent.md, X3), as bytes. */
import { fieldHead, scanFields, textField, varintField } from '../xds/slab/wire.ts'

/** A refusal: code and message of a `google.rpc.Status`. */
export interface Refusal {
  readonly code: number
  readonly message: string
}

/** Numbers of the fields of `DiscoveryRequest` and `DeltaDiscoveryRequest`. */
const fields = {
  sotw: { version: 1, typeUrl: 4, nonce: 5, error: 6 },
  delta: { version: 0, typeUrl: 2, nonce: 6, error: 7 },
}

/** A response of discovery, as far as the agent reads those that are for itself. */
export interface OwnResponse {
  readonly typeUrl: string
  readonly version: string
  readonly nonce: string
  /** The message of the first resource, undecoded; undefined when there is none. */
  readonly resource: Buffer | undefined
}

/** What a request says beside its type. */
export interface OwnRequest {
  readonly version?: string
  readonly nonce?: string
  readonly error?: Refusal
}

/** A request that names no resources: a subscription to all of a type, an ACK, a NACK, a health event. */
export function ownRequest(isDelta: boolean, typeUrl: string, { version = '', nonce = '', error }: OwnRequest = {}): Buffer {
  const at = isDelta ? fields.delta : fields.sotw
  const parts = [...(isDelta ? [] : [textField(at.version, version)]), textField(at.typeUrl, typeUrl), textField(at.nonce, nonce)]
  if (error) {
    const content = Buffer.concat([varintField(1, error.code), textField(2, error.message)])
    parts.push(Buffer.concat([fieldHead(at.error, content.length), content]))
  }
  return Buffer.concat(parts)
}

/** Reads a response. Throws WireError. */
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
  // A delta response says the version of each resource, and its ACK none.
  return { typeUrl: texts[4] || resourceType, version: isDelta ? '' : (texts[1] ?? ''), nonce: texts[5] ?? '', resource }
}

/** The last field of a number that has bytes. */
function fieldOf(message: Buffer, number: number): Buffer | undefined {
  let found: Buffer | undefined
  for (const { field, bytes } of scanFields(message)) if (field === number && bytes) found = bytes
  return found
}
