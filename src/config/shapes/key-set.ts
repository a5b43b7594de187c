/** JSON Web Key Sets (RFC 7517) that proxies can use. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { isMapping, text } from '../shape.ts'

/** A JSON Web Key Set as text (RFC 7517). */
export const keySet = text({
  max: 1_048_576,
  check: keySetFault,
  examples: ['{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'],
})

/** What keeps text from being a JSON Web Key Set, or undefined. */
export function keySetFault(content: string): string | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(content)
  } catch {
    return 'not JSON'
  }
  if (!isMapping(parsed) || !Array.isArray(parsed.keys)) return 'not a JSON Web Key Set: it has no list of keys'
  if (parsed.keys.length === 0) return 'the key set has no keys'
  if (parsed.keys.length > 500) return 'the key set has more than 500 keys'
  const secret = parsed.keys.findIndex((key) => isMapping(key) && ('d' in key || key.kty === 'oct'))
  if (secret >= 0) return `key ${secret} is a secret, not a public key`
  return parsed.keys.some(isUsableKey) ? undefined : 'none of its keys can be used'
}

/** Curves that Envoy takes; for RSA there is none to name. */
const curves: Readonly<Record<string, readonly (string | undefined)[]>> = { RSA: [undefined], EC: ['P-256', 'P-384', 'P-521'], OKP: ['Ed25519'] }

/** Whether a proxy could check signatures with a key. A set without such a key would have it refuse its whole configuration. */
function isUsableKey(key: unknown): boolean {
  if (!isMapping(key) || typeof key.kty !== 'string' || !Object.hasOwn(curves, key.kty)) return false
  if (!curves[key.kty]?.includes(key.kty === 'RSA' ? undefined : (key.crv as string))) return false
  for (const field of ['kid', 'alg', 'use']) if (key[field] !== undefined && typeof key[field] !== 'string') return false
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' })
    return true
  } catch {
    return false
  }
}
