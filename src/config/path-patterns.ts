/**
 * Path values of AuthorizationPolicies: reasons why a value can never match, and its characters after the normalization that Envoy applies
 * to request paths (docs/resources.md, M1 to M4).
 */
import type { MeshConfig } from './mesh-config.ts'
import { isPathTemplate } from './path-templates.ts'

type Normalization = MeshConfig['pathNormalization']['normalization']

/** Whether consecutive slashes are merged. */
export function mergesSlashes(normalization: Normalization | undefined): boolean {
  return normalization !== 'NONE' && normalization !== 'BASE'
}

/** Whether `%2F` and `%5C` are decoded to slashes. */
export function decodesSlashes(normalization: Normalization | undefined): boolean {
  return mergesSlashes(normalization) && normalization !== 'MERGE_SLASHES'
}

/**
 * A parsed path value. A value with `{*}` or `{**}` is a template. Otherwise a star at the start makes it a suffix, and one at the end a
 * prefix.
 */
export interface PathPattern {
  readonly kind: 'any' | 'exact' | 'prefix' | 'suffix' | 'template'
  readonly text: string
}

/** Parses a path value. */
export function pathPatternOf(value: string): PathPattern {
  if (value === '*') return { kind: 'any', text: '' }
  if (isPathTemplate(value)) return { kind: 'template', text: value }
  if (value.startsWith('*')) return { kind: 'suffix', text: value.slice(1) }
  if (value.endsWith('*')) return { kind: 'prefix', text: value.slice(0, -1) }
  return { kind: 'exact', text: value }
}

/**
 * A character of a normalized path: one with a single form, or one that may be plain or percent-encoded. `plain` is undefined if a
 * normalized path never contains it plain; `escaped` is `%` and two upper-case digits.
 */
export type PathCharacter = string | { readonly plain: string | undefined; readonly escaped: string }

const unreserved = /[A-Za-z0-9\-._~]/
/**
 * Characters that Envoy leaves plain or percent-encoded, as they are. Every other character that is not unreserved is encoded or refused.
 */
const kept = /[!$&'()*+,:;=@[\]]/
const hexDigit = /[0-9A-Fa-f]/

/**
 * Parses a path, or a part of one, into characters. Without normalization different forms are different paths, so all characters are
 * returned as they are.
 */
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

/** The character for a byte that may be percent-encoded. */
function ofByte(byte: number): PathCharacter {
  const character = String.fromCharCode(byte)
  if (byte < 0x80 && unreserved.test(character)) return character
  return { plain: byte < 0x80 && kept.test(character) ? character : undefined, escaped: `%${byte.toString(16).toUpperCase().padStart(2, '0')}` }
}

/**
 * Returns why a path value can never match a request. Undefined when it can. With `NONE` only reasons that hold under every normalization
 * are returned.
 */
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
