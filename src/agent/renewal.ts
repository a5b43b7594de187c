/**
 * When a workload certificate is renewed, and how long the agent waits after a failed call to the authority (docs/certificates.md, N1 to
 * N5).
 */
import type { Pauses } from '../model/back-off.ts'

/** The bounds of the share of a certificate's life that is left when its renewal begins, whatever ratio is configured. */
const minShare = 0.1
const maxShare = 0.9
/**
 * The maximum jitter, as a share of the life that is left at the renewal: a renewal begins earlier by up to this share, so that agents
 * started together spread their requests.
 */
const renewalSpread = 0.1

/**
 * The delay from the issue of a certificate to its renewal, in milliseconds. `ratio` is `SECRET_GRACE_PERIOD_RATIO`: the share of the
 * certificate's life that is left at the renewal. `chance` is a random number from 0 to 1.
 */
export function renewalDelay(lifeMs: number, ratio: number, chance: number): number {
  const share = Math.min(maxShare, Math.max(minShare, ratio))
  return lifeMs * (1 - Math.min(maxShare, share * (1 + renewalSpread * chance)))
}

/** The delays after a failed call to the authority while there is no valid certificate. */
export const callPauses: Pauses = { firstMs: 100, longestMs: 15_000, jitter: 0.5, longestAskedMs: 600_000 }
/**
 * The longest delay with a valid certificate, in milliseconds, and the share of the certificate's remaining life that a delay has at most;
 * `leastMs` are always allowed.
 */
const withCertificate = { longestMs: 60_000, restShare: 1 / 8, leastMs: 1000 }

/** Returns the longest delay after a failed call, in milliseconds; `restMs` is the remaining life of the certificate, 0 without one. */
export function longestPause(restMs: number): number {
  const { longestMs, restShare, leastMs } = withCertificate
  return restMs > 0 ? Math.min(longestMs, Math.max(leastMs, restMs * restShare)) : callPauses.longestMs
}
