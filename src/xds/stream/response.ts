/**
 * The encoding of responses, the same for all that serve xDS: the version, the resources, and what follows them.
 * `envoy.service.discovery.v3.DiscoveryResponse` and `DeltaDiscoveryResponse` have these fields in common.
 */
import { deltaResourceHead, textField } from '../slab/wire.ts'

/** A resource of a response. */
export interface ResponseResource {
  readonly name: string
  readonly version: string
  /** The parts of the element: field 2 of a SotW response, with tag and length. */
  readonly element: readonly Buffer[]
}

/** A whole response. */
export interface WholeResponse {
  readonly typeUrl: string
  /** The version of the response; empty for none, which delta allows. */
  readonly version: string
  readonly nonce: string
  readonly resources: readonly ResponseResource[]
  /** Names without a resource, in delta. */
  readonly removed: readonly string[]
}

/** Returns what precedes the resources. */
export const responseHead = (version: string): Buffer => (version === '' ? Buffer.alloc(0) : textField(1, version))

/** Returns what follows the resources. */
export const responseTail = (typeUrl: string, nonce: string, removed: readonly string[]): Buffer =>
  Buffer.concat([textField(4, typeUrl), textField(5, nonce), ...removed.map((name) => textField(6, name))])

/** Encodes a response that is made for one stream. */
export function encodeResponse(isDelta: boolean, { typeUrl, version, nonce, resources, removed }: WholeResponse): Buffer {
  const parts = resources.flatMap((resource) => {
    if (!isDelta) return resource.element
    const length = resource.element.reduce((sum, part) => sum + part.length, 0)
    return [deltaResourceHead(resource.name, resource.version, length), ...resource.element]
  })
  return Buffer.concat([responseHead(version), ...parts, responseTail(typeUrl, nonce, removed)])
}
