/** Host values of AuthorizationPolicies (docs/resources.md, M5). */

/**
 * Returns why a host value can never match a request. Undefined when it can. Envoy refuses requests with certain characters in the
 * authority, and a port has to be a number. A prefix may end within a port.
 */
export function hostFault(value: string): string | undefined {
  const found = /[\s/?#\\|"<>^`{}]/.exec(value)?.[0]
  const end = /^[^:[\]]*:(?![0-9]+$)[^:]*$/.test(value.replace(/^\*/, ''))
  if (end && (value === '*:' || !value.endsWith('*'))) return 'never matches: the text after the colon is not a port'
  return found === undefined ? undefined : `never matches: a host has no ${JSON.stringify(found)}`
}
