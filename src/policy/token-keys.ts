/** Checks what tokens were signed with, by JSON Web Key Sets (RFC 7517). A module of its own: it loads the library for tokens. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { compactVerify } from 'jose'
import type { ReadToken } from './signed-token.ts'

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
        const { protectedHeader } = await compactVerify(text, key, { algorithms: [algorithm] })
        // Claims that were signed without being encoded are not those that were read (RFC 7797, section 7).
        if (protectedHeader.b64 !== false) return true
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
