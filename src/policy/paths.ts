/**
 * Path normalization (`meshConfig.pathNormalization`): the form of a path that Envoy matches on. By default `//` is merged and escaped
 * slashes are decoded, since servers may treat them as one slash.
 */
import type { MeshConfig } from '../config/mesh-config.ts'
import { decodesSlashes, mergesSlashes, type PathPattern, pathCharacters, pathPatternOf } from '../config/path-patterns.ts'
import { templatePath } from '../config/path-templates.ts'

type Normalization = MeshConfig['pathNormalization']['normalization']

/**
 * Returns the form of a path that policies compare: without its query, normalized as by Envoy (RFC 3986, section 6.2.2, and like browsers):
 * dot segments are resolved, backslashes become slashes, and characters that need no escape are decoded. A path of slashes only becomes
 * `//`.
 */
export function normalizePath(path: string, normalization: Normalization | undefined): string {
  const end = path.search(/[?#]/)
  let result = end < 0 ? path : path.slice(0, end)
  if (decodesSlashes(normalization)) result = result.replace(/%2f/gi, '/').replace(/%5c/gi, '\\')
  if (normalization !== 'NONE') {
    const decoded = result.replace(/%([0-9a-f]{2})/gi, (escaped, digits: string) => {
      const character = String.fromCharCode(Number.parseInt(digits, 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : escaped
    })
    result = URL.parse(`http://x${decoded}`)?.pathname ?? decoded
  }
  if (!mergesSlashes(normalization)) return result
  return /^\/{2,}$/.test(result) ? '//' : result.replace(/\/{2,}/g, '/')
}

/** Why a proxy answers a request with 400 by its path, as it is sent; undefined: it does not. */
export function pathFault(path: string, isNormalized: boolean): string | undefined {
  if (!path.startsWith('/')) return 'a path starts with a slash'
  if (path.includes('#')) return 'a path with a fragment is not a request'
  if (/[^!-~]/.test(path))
    return 'a path has letters, digits and signs of ASCII alone: clients send others escaped, such as é as %C3%A9 and a space as %20'
  return isNormalized && /^[^?]*%00/.test(path) ? 'a path with %00 is not a request' : undefined
}

/**
 * Matches normalized paths in which servers may see other segments than Envoy: dot segments with parameters (`/..;x/`), and overlong UTF-8
 * encodings. Matches a whole path, in the syntax common to RE2 and JavaScript.
 */
export const ambiguousPath = '.*(/\\.\\.?(;|%3[Bb])|%[Cc][01]%[89ABab]|%[Ee]0%[89]|%[Ff]0%8).*'
const isOdd = new RegExp(`^(?:${ambiguousPath})$`, 's')

/** Parameters of the comparison of paths. */
interface PathComparison {
  readonly normalization: Normalization | undefined
  /** Whether a match denies the request. Then ambiguous paths match, otherwise they do not. */
  readonly denies: boolean
  /** Whether plain and escaped characters are equal (policy check `path-forms`). */
  readonly forms: boolean
}

/** Whether a normalized path matches a path value. */
export function pathMatches(value: string, path: string, { normalization, denies, forms }: PathComparison): boolean {
  const pattern = pathPatternOf(value)
  if (pattern.kind === 'any') return path !== ''
  const compared = forms ? normalization : 'NONE'
  const hasForms = compared !== 'NONE'
  if (hasForms && isOdd.test(path)) return denies
  if (pattern.kind === 'template') return templateMatches(pattern.text, path, { normalization: compared, denies: denies && forms })
  return (hasForms && denies && path === '//' && sameText(pattern, '/', compared)) || sameText(pattern, path, compared)
}

function sameText(pattern: PathPattern, path: string, normalization: Normalization | undefined): boolean {
  const [given, wanted] = [standsFor(path, normalization), standsFor(pattern.text, normalization)]
  switch (pattern.kind) {
    case 'exact':
      return given === wanted
    case 'prefix':
      return given.startsWith(wanted)
    default:
      return given.endsWith(wanted)
  }
}

/**
 * Returns a text with one character for each plain or escaped character. Characters that only occur escaped are mapped to code points from
 * U+0100 on.
 */
function standsFor(text: string, normalization: Normalization | undefined): string {
  return pathCharacters(text, normalization)
    .map((character) => (typeof character === 'string' ? character : standIn(character)))
    .join('')
}

const standIn = ({ plain, escaped }: { plain: string | undefined; escaped: string }): string =>
  plain !== undefined && plain !== '%' ? plain : String.fromCharCode(0x100 + Number.parseInt(escaped.slice(1), 16))

const isTemplateText = new RegExp(`^${templatePath}$`)

/**
 * Whether a path matches a template. `{*}` is one non-empty segment and `{**}` one or more, of characters that Envoy's templates match. If
 * a match denies the request, a path with other characters matches if it starts with the text before the first operator; otherwise such a
 * path would bypass the rule.
 */
function templateMatches(template: string, path: string, { normalization, denies }: Pick<PathComparison, 'normalization' | 'denies'>): boolean {
  if (!isTemplateText.test(path) && denies)
    return standsFor(path, normalization).startsWith(standsFor(template.slice(0, template.indexOf('{')), normalization))
  const [wanted, given] = [template.split('/'), path.split('/')]
  const rest = wanted.indexOf('{**}')
  const surplus = given.length - wanted.length
  if (rest < 0 ? surplus !== 0 : surplus < 0) return false
  const same = (want: string, have = '') =>
    want === '{*}' ? have !== '' && isTemplateText.test(have) : standsFor(want, normalization) === standsFor(have, normalization)
  return wanted.every((want, index) => {
    if (index === rest) return given.slice(index, index + surplus + 1).every((segment) => isTemplateText.test(segment))
    return same(want, given[rest >= 0 && index > rest ? index + surplus : index])
  })
}
