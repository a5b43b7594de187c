/**
 * Path templates in AuthorizationPolicies: `{*}` stands for one segment, `{**}` for what is left (docs/resources.md, M4). Envoy matches them with its
 * extension `envoy.path.match.uri_template`, whose operators take the characters below and no others.
 */

/** Characters that a path consists of for Envoy's templates, but for slashes (RFC 3986, section 3.3). */
const characters = "a-zA-Z0-9._~%!$&'()*+,;:@=\\-"
/** A path of such characters alone, as a regular expression that RE2 and JavaScript share. */
export const templatePath = `[${characters}/]*`
const literal = new RegExp(`^[${characters.replace('*', '')}]+$`)

/** Whether a value of `paths` is a template. */
export const isPathTemplate = (value: string): boolean => /\{\*\*?\}/.test(value)

/** Characters that a proxy takes for a template. */
export const longestTemplate = 256

/** What is wrong with a template, or undefined. */
export function pathTemplateFault(value: string): string | undefined {
  if (!value.startsWith('/')) return 'a path template starts with a slash'
  if (value.length > longestTemplate) return `longer than the ${longestTemplate} characters that a proxy takes for a path template`
  const segments = value.slice(1).replace(/\/$/, '').split('/')
  const rest = segments.indexOf('{**}')
  if (rest >= 0 && segments.slice(rest + 1).some((segment) => /^\{\*\*?\}$/.test(segment))) return 'no operator can follow {**}'
  for (const segment of segments) {
    if (/^\{\*\*?\}$/.test(segment)) continue
    if (!literal.test(segment)) return `${JSON.stringify(segment)} is neither {*}, {**} nor plain text`
    if (segment === '.' || segment === '..') return `never matches: a proxy resolves ${JSON.stringify(segment)} before it looks`
  }
  return undefined
}
