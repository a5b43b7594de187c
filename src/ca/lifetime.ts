/** Lifetimes of certificates (docs/certificates.md, T1 to T4). Times are Unix milliseconds, durations milliseconds. */

/** The validity of a certificate. Both ends are whole seconds. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/** How far before the present a certificate's validity begins, for peers whose clock is behind. */
export const clockMargin = 300_000

/** Lifetime of serving certificates, in milliseconds (docs/certificates.md, T4). */
export const servingLife = 90 * 86_400_000

/** The limits on the lifetimes that an authority grants. */
export interface LifetimeRules {
  /** Granted when the request asks for no lifetime. */
  readonly default: number
  /** The maximum lifetime that a request may ask for. */
  readonly most: number
}

/** Thrown when the requested lifetime exceeds the maximum. */
export class LifetimeFault extends Error {}

/** The present, as two clocks have it: they differ only while the wall clock is disputed (docs/certificates.md, D4). */
export interface Present {
  readonly wall: number
  /** The time that counts. */
  readonly believed: number
}

/**
 * The validity of a workload certificate issued now, limited to the validity of the signing authority. `wanted` is the requested lifetime,
 * 0 for the default. Throws {@link LifetimeFault} when `wanted` exceeds `rules.most`.
 */
export function workloadValidity(wanted: number, rules: LifetimeRules, now: Present, authority: Validity): Validity {
  return validityWithin(workloadLife(wanted, rules), now, authority, rules.most)
}

/** The lifetime of a workload certificate. `wanted` is the requested one, 0 for the default. Throws {@link LifetimeFault} like {@link workloadValidity}. */
export function workloadLife(wanted: number, rules: LifetimeRules): number {
  if (wanted > rules.most) throw new LifetimeFault(`requested TTL ${duration(wanted)} is greater than the max allowed TTL ${duration(rules.most)}`)
  return wanted > 0 ? wanted : Math.min(rules.default, rules.most)
}

/**
 * A validity of the length `life` from now on, limited to the validity of the signing authority. While the wall clock is disputed, it
 * begins with the earlier of the two times, and lasts `life` from the later one if that makes it no longer than `most` (D4).
 */
export function validityWithin(life: number, { wall, believed }: Present, authority: Validity, most = life): Validity {
  const [early, late] = [Math.min(wall, believed), Math.max(wall, believed)]
  const end = (late + life - early <= most ? late : believed) + life
  return {
    notBefore: wholeSecond(Math.max(early - clockMargin, authority.notBefore)),
    notAfter: wholeSecond(Math.min(end, authority.notAfter)),
  }
}

/** Whether a validity holds at the Unix time `now` in milliseconds. */
export const isValidAt = ({ notBefore, notAfter }: Validity, now: number): boolean => notBefore <= now && now < notAfter

/** The validity of a root certificate made at `now`. */
export function rootValidity(life: number, now: number): Validity {
  return { notBefore: wholeSecond(now - clockMargin), notAfter: wholeSecond(now + life) }
}

const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000

/** Formats a duration in hours, minutes and seconds, `2160h0m0s`. */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 3600)}h${Math.floor(seconds / 60) % 60}m${seconds % 60}s`
}
