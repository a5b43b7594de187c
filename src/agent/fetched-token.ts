/** Tokens that an agent fetches: how long they are good for, and when the next is fetched (docs/certificates.md, F1 to F5). */

/** How long before its end a token is exchanged, in milliseconds; one that lives less than twice as long, with half of its life left. */
const aheadMs = 25 * 60_000
/** Life of a token that does not say when it ends, in milliseconds. */
const assumedLife = 60 * 60_000

/** How long a token is still good for at the Unix time `now` in milliseconds: `exp` of its claims (RFC 7519, 4.1.4), which are not verified here; an hour where they cannot be read. */
export function tokenLife(token: string, now: number): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const { exp } = Object(claims) as { exp?: unknown }
    if (typeof exp === 'number' && Number.isFinite(exp)) return exp * 1000 - now
  } catch {
    // It is a token of another form.
  }
  return assumedLife
}

/** After how many milliseconds a token that is good for `lifeMs` is exchanged. */
export function refreshDelay(lifeMs: number): number {
  return Math.max(0, lifeMs - aheadMs, lifeMs / 2)
}
