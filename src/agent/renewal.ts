/**
 * When a workload certificate is renewed, and how long the agent waits after a failed call to the authority (docs/certificates.md, N1 to
 * N5).
 */

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

/** The first delay after a failed call, and the maximum delays with and without a valid certificate, in milliseconds. */
const firstWait = 100
const longestWait = { with: 60_000, without: 15_000 }
/** The maximum delay that the server can ask for, in milliseconds. */
const longestAsked = 600_000
/**
 * With a valid certificate, the delay is at most this share of the certificate's remaining life, but `restLeast` milliseconds are always
 * allowed.
 */
const restShare = 1 / 8
const restLeast = 1000

/**
 * The delay before the next call after `failures` failures in a row, in milliseconds: exponential back-off from 100 ms, less up to half of
 * it at random. The maximum is 15 s without a certificate; with one that is valid for another `restMs`, one minute or an eighth of
 * `restMs`, whichever is less, but at least one second. The delay that the authority asked for (`askedMs`, ten minutes at most, plus up to
 * a fifth at random) is a lower bound. `restMs` is 0 without a certificate; `chance` is a random number from 0 to 1.
 */
export function retryDelay(failures: number, askedMs: number, restMs: number, chance: number): number {
  const longest = restMs > 0 ? Math.min(longestWait.with, Math.max(restLeast, restMs * restShare)) : longestWait.without
  const wait = Math.min(longest, firstWait * 2 ** Math.min(failures - 1, 20)) * (1 - chance / 2)
  return Math.max(wait, Math.min(longestAsked, askedMs) * (1 + chance / 5))
}
