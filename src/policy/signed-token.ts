/** Parsing of signed JSON Web Tokens (RFC 7515, RFC 7519), before the signature is verified. */

/** Asymmetric algorithms (RFC 7518, section 3.1; RFC 8037). With any other algorithm, everyone who has the key set could sign tokens. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

/** A parsed token of which nothing is verified yet. */
export interface ReadToken {
  readonly text: string
  readonly algorithm: string
  /** The key id in the header of the token. */
  readonly kid: string | undefined
  readonly claims: Readonly<Record<string, unknown>>
}

/** Parses a token. Returns the reason if it cannot be accepted: it is malformed, or its algorithm is not asymmetric. */
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

/** Returns a value of a token for messages: as JSON of bounded length, so that it cannot imitate other text. */
export const described = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)
