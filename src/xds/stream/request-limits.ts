/** Bounds of what a discovery request names. */
import { WireError } from '../slab/wire.ts'

/**
 * The maximum length in bytes of a resource name, a type URL, the message of a NACK and a nonce, and the maximum number of names in one
 * request.
 */
export const limits = { name: 4096, typeUrl: 512, refusal: 4096, nonce: 256, names: 500_000 }

/**
 * Checks the length in bytes of a name that follows `count` others. Throws {@link WireError} if the name is too long or the request has too
 * many names.
 */
export function checkName(length: number, count: number): void {
  if (length > limits.name) throw new WireError(`resource name is longer than ${limits.name} bytes`)
  if (count >= limits.names) throw new WireError(`more than ${limits.names} resource names`)
}
