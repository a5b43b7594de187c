/**
 * Path values of AuthorizationPolicies: what keeps one from ever matching, and the characters that it is made of once it is normalized as
 * Envoy normalizes the paths of requests (docs/resources.md, M1 to M4).
 */
import type { MeshConfig } from './mesh-config.ts'
import { isPathTemplate } from './path-templates.ts'

type Normalization = MeshConfig['pathNormalization']['normalization']

/** Whether slashes in a row become one. */
export function mergesSlashes(normalization: Normalization | undefined): boolean {
  return normalization !== 'NONE' && normalization !== 'BASE'
}

/** Whether `%2F` and `%5C` become slashes. */
export function decodesSlashes(normalization: Normalization | undefined): boolean {
  return mergesSlashes(normalization) && normalization !== 'MERGE_SLASHES'
}

/** A path value taken apart. A value with `{*}` or `{**}` is a template; else a star counts at the start, or else at the end. */
export interface PathPattern {
  readonly kind: 'any' | 'exact' | 'prefix' | 'suffix' | 'template'
  readonly text: string
}

/** Takes a path value apart. */
export function pathPatternOf(value: string): PathPattern {
  if (value === '*') return { kind: 'any', text: '' }
  if (isPathTemplate(value)) return { kind: 'template', text: value }
  if (value.startsWith('*')) return { kind: 'suffix', text: value.slice(1) }
  if (value.endsWith('*')) return { kind: 'prefix', text: value.slice(0, -1) }
  return { kind: 'exact', text: value }
}

/**
 * A character of a normalized path: one that has no other form, or one that may come plain or escaped. `plain` is undefined where a path never
 * holds it plain, `escaped` is `%` and two upper-case digits.
 */
export type PathCharacter = string | { readonly plain: string | undefined; readonly escaped: string }

const unreserved = /[A-Za-z0-9\-._~]/
/** What Envoy leaves as it comes, plain or escaped; it escapes or refuses every other character that is not unreserved. */
const kept = /[!$&'()*+,:;=@[\]]/
const hexDigit = /[0-9A-Fa-f]/

/** Reads a path, or a part of one, as the characters that it stands for. Without normalization nobody may take two forms for one: all stand for themselves. */
export function pathCharacters(text: string, normalization: Normalization | undefined): PathCharacter[] {
  if (normalization === 'NONE') return [...text]
  const decoded = decodesSlashes(normalization) ? text.replace(/%2f/gi, '/').replace(/%5c/gi, '\\') : text
  const characters: PathCharacter[] = []
  for (let at = 0; at < decoded.length; at++) {
    const code = decoded.codePointAt(at) as number
    const character = String.fromCodePoint(code)
    const digits = /^%([0-9A-Fa-f]{2})/.exec(decoded.slice(at, at + 3))?.[1]
    if (digits !== undefined) {
      characters.push(ofByte(Number.parseInt(digits, 16)))
      at += 2
    } else if (character === '/' || character === '\\') characters.push('/')
    else if (character === '%') characters.push({ plain: hexDigit.test(decoded[at + 1] ?? '') ? undefined : '%', escaped: '%25' })
    else {
      characters.push(...[...new TextEncoder().encode(character)].map(ofByte))
      at += character.length - 1
    }
  }
  return characters
}

/** The character of a byte that may come escaped. */
function ofByte(byte: number): PathCharacter {
  const character = String.fromCharCode(byte)
  if (byte < 0x80 && unreserved.test(character)) return character
  return { plain: byte < 0x80 && kept.test(character) ? character : undefined, escaped: `%${byte.toString(16).toUpperCase().padStart(2, '0')}` }
}

/** Why no request can ever match a path value, or undefined. With `NONE` it says what holds under every normalization. */
export function pathFault(value: string, normalization: Normalization | undefined): string | undefined {
  const { kind, text } = pathPatternOf(value)
  if (kind === 'any') return undefined
  if (kind !== 'suffix' && !text.startsWith('/')) return 'never matches: a path starts with a slash'
  if (/[?#]/.test(text)) return 'never matches: paths are compared without their query; write %3F or %23 for these characters'
  if (/%00/.test(text)) return 'never matches: a path with a null character is refused'
  if (kind === 'prefix' && /%[0-9A-Fa-f]?$/.test(text)) return 'ends inside an escape: write all of its three characters'
  if (normalization === 'NONE') return undefined
  const normal = pathCharacters(text, normalization)
    .map((character) => (typeof character === 'string' ? character : character.escaped))
    .join('')
  if (mergesSlashes(normalization) && normal.includes('//')) return 'never matches: slashes in a row are merged before paths are compared'
  if ((kind === 'prefix' ? /\/\.\.?\// : /\/\.\.?(\/|$)/).test(normal)) return 'never matches: dot segments are resolved before paths are compared'
  return undefined
}
