/** Trust domain names (SPIFFE ID, section 2.1). */

/** The maximum length of a name in bytes (SPIFFE ID, section 2.3). */
const longest = 255

/**
 * Returns a trust domain in the form used in SPIFFE IDs: `@`, which cloud project domains contain, is replaced by `.`, and letters are
 * converted to lower case. Undefined when the result is not 1 to 255 letters, digits, `.`, `-` and `_`.
 */
export function canonicalTrustDomain(given: string): string | undefined {
  const name = given.replaceAll('@', '.').toLowerCase()
  return isTrustDomain(name) ? name : undefined
}

/** Whether text is a trust domain name as it has to be in a SPIFFE ID. */
export function isTrustDomain(name: string): boolean {
  return name.length <= longest && /^[a-z0-9._-]+$/.test(name)
}

/** Returns why text is not a valid trust domain. Undefined when it is valid. */
export function trustDomainFault(given: string): string | undefined {
  if (canonicalTrustDomain(given) !== undefined) return undefined
  return `${JSON.stringify(given.slice(0, 100))} is not a trust domain: 1 to ${longest} letters, digits, ".", "-" and "_"`
}
