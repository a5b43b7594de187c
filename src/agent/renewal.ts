/** When a workload certificate is renewed, and when a failed call to the authority is made again (docs/certificates.md, N1 to N5). */

/** Shares of a life that may be left when a renewal begins, whatever is asked for. */
const leastShare = 0.1
const mostShare = 0.9
/** A renewal begins earlier by up to this share of the rest, so that agents that started together do not ask together. */
const renewalSpread = 0.1

/**
 * How long after its issue a certificate is renewed, in milliseconds. `ratio` is `SECRET_GRACE_PERIOD_RATIO`: the share of its life that
 * is left then. `chance` is from 0 to 1.
 */
export function renewalDelay(lifeMs: number, ratio: number, chance: number): number {
  const share = Math.min(mostShare, Math.max(leastShare, ratio))
  return lifeMs * (1 - Math.min(mostShare, share * (1 + renewalSpread * chance)))
}

/** First wait after a failed call, and the longest with a certificate and without one, in milliseconds. */
const firstWait = 100
const longestWait = { with: 60_000, without: 15_000 }
/** Longest wait that an answer may ask for, in milliseconds. */
const longestAsked = 600_000
/** While there is a certificate, at most this share of its rest is waited; this many milliseconds are in any case. */
const restShare = 1 / 8
const restLeast = 1000

/**
 * How long is waited after so many failures in a row, in milliseconds: 100 ms, doubling to 15 s, less up to half of it by chance; with a
 * certificate that is valid for `restMs` still, to a minute or an eighth of that time (but to a second at least). And at least what the
 * authority asked for, ten minutes at most, and up to a fifth more by chance. `restMs` is 0 without a certificate; `chance` is from 0 to 1.
 */
export function retryDelay(failures: number, askedMs: number, restMs: number, chance: number): number {
  const longest = restMs > 0 ? Math.min(longestWait.with, Math.max(restLeast, restMs * restShare)) : longestWait.without
  const wait = Math.min(longest, firstWait * 2 ** Math.min(failures - 1, 20)) * (1 - chance / 2)
  return Math.max(wait, Math.min(longestAsked, askedMs) * (1 + chance / 5))
}
