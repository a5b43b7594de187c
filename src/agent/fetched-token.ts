/** Lifetimes of the tokens that an agent fetches, and when each is replaced (docs/certificates.md, F1 to F5). */

/**
 * How long before its expiry a token is replaced, in milliseconds. A token with less than twice that left is replaced after half of its
 * remaining life.
 */
const aheadMs = 25 * 60_000
/** The lifetime that is assumed for a token without a readable expiry, in milliseconds. */
const assumedLife = 60 * 60_000

/**
 * The remaining lifetime of a token at the Unix time `now`, both in milliseconds: from the `exp` claim (RFC 7519, 4.1.4), whose signature
 * is not verified here, or one hour when the claim cannot be read.
 */
export function tokenLife(token: string, now: number): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const { exp } = Object(claims) as { exp?: unknown }
    if (typeof exp === 'number' && Number.isFinite(exp)) return exp * 1000 - now
  } catch {
    // Not a JWT: the assumed lifetime applies.
  }
  return assumedLife
}

/** The delay until a token with the remaining lifetime `lifeMs` is replaced. Both in milliseconds. */
export function refreshDelay(lifeMs: number): number {
  return Math.max(0, lifeMs - aheadMs, lifeMs / 2)
}
