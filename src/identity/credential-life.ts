/** How long streams outlive the credential of their client (docs/identity.md, T5 and T6). */

/** Within how many milliseconds streams end whose credential is not trusted any more: each at a moment of its own, so that not all clients come back at once. */
export const distrustedMs = 10_000

/**
 * When a stream ends whose credential expires at `expiresAt`: after a grace period, and up to as long again, so that clients whose
 * credentials expire together do not come back together. Unix times and durations in milliseconds; `share` is a random number from 0 to 1.
 */
export function endOfCredential(expiresAt: number, grace: number, share: number): number {
  return expiresAt + grace * (1 + share)
}
