/** JSON Web Tokens with a signature (RFC 7515, RFC 7519): reading one, and checking what it was signed with. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { compactVerify } from 'jose'

/** Algorithms with a public key (RFC 7518, section 3.1; RFC 8037): with any other, whoever has the key set could sign. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

/** The parts of a token, before anything was checked. */
export interface ReadToken {
  readonly text: string
  readonly algorithm: string
  /** The key that the token says it was signed with. */
  readonly kid: string | undefined
  readonly claims: Readonly<Record<string, unknown>>
}

/** Reads a token. Returns the reason when it is none that could be accepted: its form, or an algorithm that is none with a public key. */
export function readToken(text: string): ReadToken | string {
  const parts = text.split('.')
  if (parts.length !== 3) return 'not a token: it needs three parts'
  const header = readObject(parts[0] as string)
  if (!header) return 'its header is not an object in JSON'
  const { alg, kid } = header
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return `its algorithm is ${described(alg)}, which is none with a public key`
  if (kid !== undefined && typeof kid !== 'string') return 'its kid is not text'
  const claims = readObject(parts[1] as string)
  return claims ? { text, algorithm: alg, kid, claims } : 'its claims are not an object in JSON'
}

function readObject(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** What a token says of itself, for messages: bounded, and in JSON, so that nothing in it can pass for something else. */
export const described = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)

/** Whose habits count: those of a proxy, which tries every key and does not look at what a key is for, or ours. */
export type TokenChecker = 'proxy' | 'mesh'

/** Most keys that the mesh holds one token against: whoever names no key makes all of them be tried. */
const mostTried = 16

interface Key {
  readonly kid: string | undefined
  readonly algorithm: string | undefined
  readonly key: KeyObject
}

/** The keys of a set that check signatures. */
export class TokenKeys {
  readonly #keys: readonly Key[]
  readonly #tried: number

  /** Takes a JSON Web Key Set as text. Keys that cannot be used are left out; for the mesh also those that are for something else than signatures. Throws for what is no key set. */
  constructor(content: string, checker: TokenChecker) {
    const { keys } = JSON.parse(content) as { keys: JsonWebKey[] }
    this.#keys = keys.filter((jwk) => checker === 'proxy' || isForSignatures(jwk)).flatMap((jwk) => keyOf(jwk) ?? [])
    this.#tried = checker === 'proxy' ? Number.POSITIVE_INFINITY : mostTried
  }

  /** Whether there is a key of that id. */
  has(kid: string): boolean {
    return this.#keys.some((key) => key.kid === kid)
  }

  /** Whether a token was signed with one of these keys. */
  async haveSigned({ text, algorithm, kid }: ReadToken): Promise<boolean> {
    const fitting = this.#keys.filter(
      (key) =>
        (kid === undefined || key.kid === undefined || key.kid === kid) &&
        (key.algorithm === undefined || key.algorithm === algorithm) &&
        isFor(key.key, algorithm),
    )
    for (const { key } of fitting.slice(0, this.#tried)) {
      try {
        await compactVerify(text, key, { algorithms: [algorithm] })
        return true
      } catch {
        // The next key may fit.
      }
    }
    return false
  }
}

/** Whether a key says that it is for signatures, or does not say what it is for (RFC 7517, sections 4.2 and 4.3). */
function isForSignatures(jwk: JsonWebKey): boolean {
  const { use = 'sig', key_ops: operations = ['verify'] } = jwk as Readonly<Record<string, unknown>>
  return use === 'sig' && Array.isArray(operations) && operations.includes('verify')
}

function keyOf(jwk: JsonWebKey): Key | undefined {
  const { kid, alg: algorithm } = jwk as Readonly<Record<string, unknown>>
  for (const text of [kid, algorithm]) if (text !== undefined && typeof text !== 'string') return undefined
  try {
    return { kid: kid as string | undefined, algorithm: algorithm as string | undefined, key: createPublicKey({ key: jwk, format: 'jwk' }) }
  } catch {
    return undefined
  }
}

const curves: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' }

/** Whether a key is of the kind that an algorithm needs. */
function isFor({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject, algorithm: string): boolean {
  if (/^[RP]S/.test(algorithm)) return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048
  if (algorithm in curves) return type === 'ec' && details?.namedCurve === curves[algorithm]
  return type === 'ed25519'
}
