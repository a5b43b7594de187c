/** Names of trust domains (SPIFFE ID, section 2.1), as users write them. */

/** Most bytes of a name (SPIFFE ID, section 2.3). */
const longest = 255

/**
 * A trust domain as it stands in identities: `@`, which domains of cloud projects have, becomes `.`, and capital letters, which have no
 * meaning, become small ones. Undefined when it is not 1 to 255 letters, digits, `.`, `-` and `_`.
 */
export function canonicalTrustDomain(given: string): string | undefined {
  const name = given.replaceAll('@', '.').toLowerCase()
  return isTrustDomain(name) ? name : undefined
}

/** Whether text is the name of a trust domain as it must stand in a SPIFFE id. */
export function isTrustDomain(name: string): boolean {
  return name.length <= longest && /^[a-z0-9._-]+$/.test(name)
}

/** What is wrong with a trust domain that a user wrote, or undefined. */
export function trustDomainFault(given: string): string | undefined {
  if (canonicalTrustDomain(given) !== undefined) return undefined
  return `${JSON.stringify(given.slice(0, 100))} is not a trust domain: 1 to ${longest} letters, digits, ".", "-" and "_"`
}
