/**
 * Path templates in AuthorizationPolicies: `{*}` stands for one segment, `{**}` for what is left (docs/resources.md, A7). Envoy matches them with its
 * extension `envoy.path.match.uri_template`, whose operators take the characters below and no others.
 */

/** Characters that a path consists of for Envoy's templates, but for slashes (RFC 3986, section 3.3). */
const characters = "a-zA-Z0-9._~%!$&'()*+,;:@=\\-"
/** A path of such characters alone, as a regular expression. */
export const templatePath = `[${characters}/]*`
const literal = new RegExp(`^[${characters.replace('*', '')}]+$`)
const onlyKnown = new RegExp(`^${templatePath}$`)

/** Whether a value of `paths` is a template. */
export const isPathTemplate = (value: string): boolean => /\{\*\*?\}/.test(value)

/** What is wrong with a template, or undefined. */
export function pathTemplateFault(value: string): string | undefined {
  if (!value.startsWith('/')) return 'a path template starts with a slash'
  if (value.length > 256) return 'longer than the 256 characters that a proxy takes for a path template'
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

/** The template as Envoy writes it. */
export const envoyTemplate = (value: string): string => value.replaceAll('{**}', '**').replaceAll('{*}', '*')

/** What stands before the first operator. */
export const templatePrefix = (value: string): string => value.slice(0, value.indexOf('{'))

/**
 * Whether a template matches a normalized path. `widely`: a path with characters that Envoy's operators do not take counts as well if it begins as the
 * template does, which is how templates are read where a match denies; otherwise such a character would lead past them.
 */
export function templateMatches(value: string, path: string, widely: boolean): boolean {
  const regex = value
    .split(/(\{\*\*?\})/)
    .map((part) => (part === '{**}' ? templatePath : part === '{*}' ? `[${characters}]+` : part.replace(/[$().+]/g, '\\$&')))
    .join('')
  return new RegExp(`^${regex}$`).test(path) || (widely && path.startsWith(templatePrefix(value)) && !onlyKnown.test(path))
}
