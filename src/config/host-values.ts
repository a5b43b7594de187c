/** Host values of AuthorizationPolicies (docs/resources.md, M5). */

/**
 * Why no request can ever match a host value as it is meant, or undefined: Envoy refuses requests whose authority has some characters, and a port is a
 * number. A prefix may end within a port.
 */
export function hostFault(value: string): string | undefined {
  const found = /[\s/?#\\|"<>^`{}]/.exec(value)?.[0]
  const end = /^[^:[\]]*:(?![0-9]+$)[^:]*$/.test(value.replace(/^\*/, ''))
  if (end && (value === '*:' || !value.endsWith('*'))) return 'never matches: what follows a colon is no port'
  return found === undefined ? undefined : `never matches: a host has no ${JSON.stringify(found)}`
}
