/** How long a stream may outlive its client's credential (docs/identity.md, T5 and T6). */

/**
 * The period over which the streams of a credential that is no longer trusted are ended, in milliseconds. The end of each is random, so
 * that clients do not all reconnect at once.
 */
export const distrustedMs = 10_000

/**
 * Returns when a stream ends whose credential expires at `expiresAt`: after the grace period and up to as long again, so that clients whose
 * credentials expire together do not reconnect together. Unix times and durations are in milliseconds; `share` is a random number from 0 to
 * 1.
 */
export function endOfCredential(expiresAt: number, grace: number, share: number): number {
  return expiresAt + grace * (1 + share)
}
