/**
 * Path templates in AuthorizationPolicies: `{*}` matches one segment, `{**}` the rest of the path (docs/resources.md, M4). Envoy matches
 * them with its extension `envoy.path.match.uri_template`, whose operators accept only the characters below.
 */

/** The characters of a path, other than slashes, that Envoy's templates match (RFC 3986, section 3.3). */
const characters = "a-zA-Z0-9._~%!$&'()*+,;:@=\\-"
/** A regular expression, valid in RE2 and JavaScript, for paths of only these characters. */
export const templatePath = `[${characters}/]*`
const literal = new RegExp(`^[${characters.replace('*', '')}]+$`)

/** Whether a value of `paths` is a template. */
export const isPathTemplate = (value: string): boolean => /\{\*\*?\}/.test(value)

/** The maximum length of a template in characters. */
export const longestTemplate = 256

/** Returns why a template is not valid. Undefined when it is valid. */
export function pathTemplateFault(value: string): string | undefined {
  if (!value.startsWith('/')) return 'a path template starts with a slash'
  if (value.length > longestTemplate) return `longer than the ${longestTemplate} characters that a proxy allows in a path template`
  const segments = value.slice(1).replace(/\/$/, '').split('/')
  const rest = segments.indexOf('{**}')
  if (rest >= 0 && segments.slice(rest + 1).some((segment) => /^\{\*\*?\}$/.test(segment))) return 'no operator can follow {**}'
  for (const segment of segments) {
    if (/^\{\*\*?\}$/.test(segment)) continue
    if (!literal.test(segment)) return `${JSON.stringify(segment)} is neither {*}, {**} nor plain text`
    if (segment === '.' || segment === '..') return `never matches: a proxy resolves ${JSON.stringify(segment)} before it matches the path`
  }
  return undefined
}
