/** Verifies signatures of tokens with JSON Web Key Sets (RFC 7517). A separate module because it loads the library for tokens. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { compactVerify } from 'jose'
import type { ReadToken } from './signed-token.ts'

/** Whose rules apply: those of Envoy, which tries every key and ignores the intended use of keys, or those of the mesh. */
export type TokenChecker = 'proxy' | 'mesh'

/** The maximum number of keys that the mesh tries for one token. A token without a key id makes the mesh try all keys. */
const maxTried = 16

interface Key {
  readonly kid: string | undefined
  readonly algorithm: string | undefined
  readonly key: KeyObject
}

/** The keys of a set that verify signatures. */
export class TokenKeys {
  readonly #keys: readonly Key[]
  readonly #tried: number

  /**
   * Parses a JSON Web Key Set. Unusable keys are left out, and for the mesh also keys that are not for signatures. Throws an Error for text
   * that is no key set.
   */
  constructor(content: string, checker: TokenChecker) {
    const { keys } = JSON.parse(content) as { keys: JsonWebKey[] }
    this.#keys = keys.filter((jwk) => checker === 'proxy' || isForSignatures(jwk)).flatMap((jwk) => keyOf(jwk) ?? [])
    this.#tried = checker === 'proxy' ? Number.POSITIVE_INFINITY : maxTried
  }

  /** Whether the set has a key with this id. */
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
        const { protectedHeader } = await compactVerify(text, key, { algorithms: [algorithm] })
        // With unencoded claims, the signed claims differ from those that were parsed (RFC 7797, section 7).
        if (protectedHeader.b64 !== false) return true
      } catch {
        // Another key may match.
      }
    }
    return false
  }
}

/** Whether a key is declared for signatures or its use is not declared (RFC 7517, sections 4.2 and 4.3). */
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

/** Whether a key has the type that an algorithm requires. */
function isFor({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject, algorithm: string): boolean {
  if (/^[RP]S/.test(algorithm)) return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048
  if (algorithm in curves) return type === 'ec' && details?.namedCurve === curves[algorithm]
  return type === 'ed25519'
}
