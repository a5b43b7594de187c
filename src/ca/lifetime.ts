/** How long certificates live (docs/certificates.md, T1 to T4). Times are Unix milliseconds, durations milliseconds. */

/** From when until when a certificate is valid, both whole seconds. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/** How far back the validity of a certificate begins, for those whose clock is behind. */
export const clockMargin = 300_000

/** The rules of an authority. */
export interface LifetimeRules {
  /** Given when none is asked for. */
  readonly default: number
  /** The longest that may be asked for. */
  readonly most: number
}

/** Why a life that is asked for is not given. */
export class LifetimeFault extends Error {}

/**
 * The validity of a certificate that is made at `now` and signed by an authority of this validity. Throws {@link LifetimeFault} when
 * more is asked for than is given.
 */
export function workloadValidity(wanted: number, rules: LifetimeRules, now: number, authority: Validity): Validity {
  if (wanted > rules.most) throw new LifetimeFault(`requested TTL ${duration(wanted)} is greater than the max allowed TTL ${duration(rules.most)}`)
  return validityWithin(wanted > 0 ? wanted : Math.min(rules.default, rules.most), now, authority)
}

/** A validity of so long from `now` on, within that of the authority that signs. */
export function validityWithin(life: number, now: number, authority: Validity): Validity {
  return {
    notBefore: wholeSecond(Math.max(now - clockMargin, authority.notBefore)),
    notAfter: wholeSecond(Math.min(now + life, authority.notAfter)),
  }
}

/** The validity of a root that is made at `now`. */
export function rootValidity(life: number, now: number): Validity {
  return { notBefore: wholeSecond(now - clockMargin), notAfter: wholeSecond(now + life) }
}

const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000

/** A duration in hours, minutes and seconds, `2160h0m0s`. */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 3600)}h${Math.floor(seconds / 60) % 60}m${seconds % 60}s`
}
