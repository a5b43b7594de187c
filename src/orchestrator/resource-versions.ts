/** The order of resource versions, which are decimal numbers of any length (`resourceVersion` of the API conventions). */

const decimal = /^(0|[1-9]\d*)$/

/** Whether a version is a decimal number, as that of a server is. */
export const isDecimal = (version: string): boolean => decimal.test(version)

/**
 * Whether a version is newer than another one. Undefined: there is no other one. Versions that are no decimal numbers have no order: each that
 * differs counts as newer.
 */
export function isNewer(version: string, other: string | undefined): boolean {
  if (other === undefined || !decimal.test(version) || !decimal.test(other)) return version !== other
  return version.length === other.length ? version > other : version.length > other.length
}
