/** JSON Web Key Sets (RFC 7517), reduced to the keys that Envoy (jwt_verify_lib) can use and to their public fields. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { parseBounded } from '../../model/bounded-json.ts'
import { count } from '../../model/counts.ts'
import { isMapping, type Shape, text } from '../shape.ts'

/** The maximum number of keys in a set. */
const maxKeys = 500

/** A key set with only the usable keys, and the reasons why others are left out. */
interface UsableKeySet {
  readonly content: string
  readonly leftOut: readonly string[]
}

const written = text({
  max: 1_048_576,
  check: keySetFault,
  examples: ['{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'],
})

/** A JSON Web Key Set as text (RFC 7517). The result contains the keys that proxies can use; others cause warnings. */
export const keySet: Shape<string> = {
  form: written.form,
  read(value, path, report) {
    const given = written.read(value, path, report)
    if (given === undefined) return undefined
    const { content, leftOut } = usableKeySet(given)
    for (const reason of leftOut.slice(0, 10)) report.warnings.push({ path, reason: `${reason}; it is left out` })
    return content
  },
}

/** Returns why text is not a valid JSON Web Key Set in a policy. Undefined when it is valid. A secret key is a fault. */
export function keySetFault(content: string): string | undefined {
  const keys = keysOf(content)
  if (typeof keys === 'string') return keys
  const secret = keys.findIndex(isSecret)
  if (secret >= 0) return `key ${secret} is a secret, not a public key`
  const faults = keys.map(keyFault)
  return faults.includes(undefined) ? undefined : `none of its keys can be used: ${faultTexts(faults).join('; ').slice(0, 300)}`
}

/** Returns the key set for proxies, with only the usable keys. Throws an Error with the reason when there are none. */
export function usableKeySet(content: string): UsableKeySet {
  const keys = keysOf(content)
  if (typeof keys === 'string') throw new Error(keys)
  const faults = keys.map(keyFault)
  const usable = keys.filter((_, index) => faults[index] === undefined)
  const leftOut = faultTexts(faults)
  if (usable.length === 0) throw new Error(`none of its keys can be used: ${leftOut.join('; ').slice(0, 300)}`)
  return { content: JSON.stringify({ keys: usable.map(publicParts) }), leftOut }
}

/** Returns the keys of a set, or the reason why text is not one. */
function keysOf(content: string): readonly unknown[] | string {
  let parsed: unknown
  try {
    parsed = parseBounded(content)
  } catch (error) {
    return (error as Error).message
  }
  if (!isMapping(parsed) || !Array.isArray(parsed.keys)) return 'not a JSON Web Key Set: it has no list of keys'
  if (parsed.keys.length === 0) return 'the key set has no keys'
  return parsed.keys.length > maxKeys ? `the key set has more than ${maxKeys} keys` : parsed.keys
}

const isSecret = (key: unknown): boolean => isMapping(key) && ('d' in key || key.kty === 'oct')

const faultTexts = (faults: readonly (string | undefined)[]): string[] =>
  faults.flatMap((fault, index) => (fault === undefined ? [] : [`key ${index} ${fault}`]))

type Key = Readonly<Record<string, unknown>>

/** Returns why proxies cannot use a key, by the rules of Envoy (jwt_verify_lib, BoringSSL) or stricter ones. Undefined when they can. */
function keyFault(key: unknown): string | undefined {
  if (!isMapping(key)) return 'is not a JSON object'
  if (isSecret(key)) return 'is a secret, not a public key'
  for (const field of ['kid', 'alg', 'use'])
    if (key[field] !== undefined && (typeof key[field] !== 'string' || !key[field].isWellFormed())) return `has a ${field} that is no text`
  const kind = typeof key.kty === 'string' && Object.hasOwn(kinds, key.kty) ? kinds[key.kty] : undefined
  if (!kind) return 'is of an unknown type (kty)'
  const encoded = kind.parts.find((part) => typeof key[part] !== 'string' || !/^[A-Za-z0-9_-]+={0,2}$/.test(key[part]))
  if (encoded !== undefined) return `has no ${encoded} in base64url`
  const fault = kind.fault(key)
  if (fault !== undefined) return fault
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' })
    return undefined
  } catch {
    return 'is not a valid key'
  }
}

/** The algorithm for each elliptic curve (RFC 7518, section 3.4). */
const curves: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }

const algorithmFault = ({ alg }: Key, fits: (algorithm: string) => boolean): string | undefined =>
  alg === undefined || alg === '' || fits(alg as string) ? undefined : 'has an algorithm (alg) of another type of key'

const kinds: Readonly<Record<string, { readonly parts: readonly string[]; fault(key: Key): string | undefined }>> = {
  RSA: {
    parts: ['n', 'e'],
    fault: (key) => rsaFault(key.n as string, key.e as string) ?? algorithmFault(key, (alg) => /^[RP]S(256|384|512)$/.test(alg)),
  },
  EC: {
    parts: ['x', 'y'],
    fault: (key) =>
      typeof key.crv === 'string' && Object.hasOwn(curves, key.crv)
        ? algorithmFault(key, (alg) => alg === curves[key.crv as string])
        : 'is of an unknown curve (crv)',
  },
  OKP: { parts: ['x'], fault: (key) => (key.crv === 'Ed25519' ? algorithmFault(key, (alg) => alg === 'EdDSA') : 'is of an unknown curve (crv)') },
}

/**
 * Returns why an RSA key is out of bounds: BoringSSL accepts no modulus above 16 kbit, and no exponent that is even, 1 or longer than 32
 * bits.
 */
function rsaFault(n: string, e: string): string | undefined {
  const [modulus, exponent] = [n, e].map((part) => withoutZeros(Buffer.from(part, 'base64url'))) as [Buffer, Buffer]
  const bits = modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24
  if (bits < 1024 || bits > 16_384) return `has ${count(bits, 'bit')}; 1024 to 16384 are allowed`
  if (((modulus.at(-1) ?? 0) & 1) === 0) return 'has an even modulus'
  const value = exponent.length > 4 ? 0 : exponent.readUIntBE(0, exponent.length || 1)
  return value >= 3 && value % 2 === 1 ? undefined : 'has an exponent that is even, 1 or too large'
}

function withoutZeros(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? Buffer.alloc(1) : bytes.subarray(first)
}

/** Returns the public fields of a key, and those about its use. */
function publicParts(key: unknown): object {
  const fields = ['kty', 'kid', 'alg', 'use', 'key_ops', 'n', 'e', 'crv', 'x', 'y']
  const plain = (value: unknown) => (typeof value === 'string' ? value.replace(/=+$/, '') : value)
  return Object.fromEntries(
    Object.entries(key as Key).flatMap(([name, value]) => (fields.includes(name) ? [[name, name.length === 1 ? plain(value) : value]] : [])),
  )
}
