/** Translates path conditions of rules to RBAC permissions on the path without its query (docs/resources.md, M1 to M4). */
import { UriTemplateMatchConfigSchema } from '../../../protocols/gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.js'
import type { MeshConfig } from '../../config/mesh-config.ts'
import { type PathCharacter, type PathPattern, pathCharacters, pathPatternOf } from '../../config/path-patterns.ts'
import { longestTemplate, templatePath } from '../../config/path-templates.ts'
import { ambiguousPath } from '../../policy/paths.ts'
import { pack } from '../message.ts'
import { allRules, anyRule, type Comparison, notRule, type Permission, regexMatch, type StringMatch, textMatch } from './matchers.ts'

/** Parameters of the comparison of paths. */
interface PathComparison {
  readonly normalization: MeshConfig['pathNormalization']['normalization'] | undefined
  /** Whether a match denies the request. Then ambiguous paths match, otherwise they do not. */
  readonly denies: boolean
  /** Whether plain and escaped characters are equal (policy check `path-forms`). */
  readonly forms: boolean
}

/** The maximum number of forms of one value that are compared: eight characters, each plain or escaped. */
const maxForms = 256

const pathRule = (value: StringMatch): Permission => ({ rule: { case: 'urlPath', value: { rule: { case: 'path', value } } } })

/** Returns a permission that matches if any of the values matches. */
export function pathPermission(values: readonly string[], { normalization, denies, forms }: PathComparison): Permission {
  const patterns = values.map(pathPatternOf)
  if (patterns.some(({ kind }) => kind === 'any')) return pathRule(regexMatch('.+'))
  const compared = forms ? normalization : 'NONE'
  const found = patterns.flatMap((pattern) => permissionsOf(pattern, pathCharacters(pattern.text, compared), denies && forms))
  if (compared === 'NONE') return anyRule(found)
  const odd = pathRule(regexMatch(ambiguousPath))
  if (!denies) return allRules([anyRule(found), notRule(odd)])
  const isRoot = patterns.some(({ kind, text }) => text === '/' && kind !== 'suffix')
  return anyRule([...found, ...(isRoot ? [pathRule(textMatch('exact', '//'))] : []), odd])
}

function permissionsOf(pattern: PathPattern, characters: readonly PathCharacter[], wide: boolean): Permission[] {
  const { kind } = pattern
  if (kind === 'template') return templatesOf(characters, wide)
  if (kind === 'any' || characters.length === 0) return [pathRule(regexMatch('.*'))]
  const texts = formsOf(characters)
  if (texts) return texts.map((text) => textRule(kind, text))
  const same = uniformForms(characters).map((text) => textRule(kind, text))
  return wide ? [...same, allRules(runsOf(characters).map((run) => pathRule(textMatch(...pinned(kind, run)))))] : same
}

/** Returns every form of a text, with escapes in upper case; undefined if there are too many. */
function formsOf(characters: readonly PathCharacter[]): string[] | undefined {
  const choices = characters.filter((character) => typeof character !== 'string' && character.plain !== undefined).length
  if (2 ** choices > maxForms) return undefined
  return characters.reduce<string[]>(
    (texts, character) => {
      if (typeof character === 'string') return texts.map((text) => text + character)
      const { plain, escaped } = character
      return texts.flatMap((text) => (plain === undefined ? [text + escaped] : [text + plain, text + escaped]))
    },
    [''],
  )
}

/** Returns two forms: all characters plain where possible, and all escaped. */
const uniformForms = (characters: readonly PathCharacter[]): string[] => [
  characters.map((character) => (typeof character === 'string' ? character : (character.plain ?? character.escaped))).join(''),
  characters.map((character) => (typeof character === 'string' ? character : character.escaped)).join(''),
]

/**
 * Returns a permission for one form of a text. Hexadecimal digits of escapes are case-insensitive: the whole text is compared without case,
 * and the runs between the escapes with case.
 */
function textRule(kind: Comparison, text: string): Permission {
  const between = text.split(/%(?=[0-9A-F]{2})[0-9]?[A-F][0-9A-F]?/)
  const whole = pathRule(textMatch(kind, text, between.length > 1))
  const pins = between.length === 1 ? [] : between.map((run, index) => ({ run, first: index === 0, last: index === between.length - 1 }))
  const pinRules = pins.filter(({ run }) => /[A-Za-z]/.test(run)).map((pin) => pathRule(textMatch(...pinned(kind, pin))))
  return allRules([whole, ...pinRules, ...(kind === 'suffix' ? insideEscape(text) : [])])
}

/** Returns the comparison of a run of a value with the path, by the position of the run in the value. */
function pinned(kind: Comparison, { run, first, last }: { run: string; first: boolean; last: boolean }): [Comparison, string] {
  if (first && (kind === 'exact' || kind === 'prefix')) return ['prefix', run]
  return [last && (kind === 'exact' || kind === 'suffix') ? 'suffix' : 'contains', run]
}

/** Prevents a suffix that starts with hexadecimal digits from matching within an escape. */
function insideEscape(text: string): Permission[] {
  if (!/^[0-9A-Fa-f]/.test(text)) return []
  const before = [...'0123456789ABCDEF'].map((digit) => `%${digit}`)
  const starts = /^[0-9A-Fa-f]{2}/.test(text) ? ['%', ...before] : before
  return [notRule(anyRule(starts.map((start) => pathRule(textMatch('suffix', start + text, true)))))]
}

/** Returns the runs between characters that have two forms. */
function runsOf(characters: readonly PathCharacter[]): { run: string; first: boolean; last: boolean }[] {
  const runs = ['']
  for (const character of characters)
    if (typeof character === 'string') runs[runs.length - 1] += character
    else runs.push('')
  return runs.map((run, index) => ({ run, first: index === 0, last: index === runs.length - 1 })).filter(({ run }) => run !== '')
}

/**
 * Returns permissions for all forms of a template (`envoy.extensions.path.match.uri_template.v3`). Its operators do not match all
 * characters: if a match denies the request, a path with other characters matches if it starts with the text before the first operator.
 */
function templatesOf(characters: readonly PathCharacter[], wide: boolean): Permission[] {
  const pieces = templatePieces(characters)
  const texts = formsOf(pieces) ?? uniformForms(pieces)
  const templates = [...new Set(texts.flatMap((text) => [text, text.replace(/%[0-9A-F]{2}/g, (digits) => digits.toLowerCase())]))]
  const found = templates
    .filter((text) => text.length <= longestTemplate)
    .map((pathTemplate): Permission => {
      const typedConfig = pack(UriTemplateMatchConfigSchema, { pathTemplate })
      return { rule: { case: 'uriTemplate', value: { name: 'envoy.path.match.uri_template.uri_template_matcher', typedConfig } } }
    })
  if (!wide) return found
  const before = pieces.slice(
    0,
    pieces.findIndex((piece) => piece === '*' || piece === '**'),
  )
  const starts = (formsOf(before) ?? uniformForms(before)).map((text) => textRule('prefix', text))
  return [...found, allRules([anyRule(starts), notRule(pathRule(regexMatch(templatePath)))])]
}

/** Returns the characters of a template, with its operators in Envoy's syntax. */
function templatePieces(characters: readonly PathCharacter[]): PathCharacter[] {
  const marked = characters.map((character) => (typeof character === 'string' ? character : (character.plain ?? character.escaped)))
  const pieces: PathCharacter[] = []
  for (let at = 0; at < characters.length; at++) {
    const operator = /^(?:\{|%7B)(\*\*?)(?:\}|%7D)/.exec(marked.slice(at, at + 4).join(''))?.[1]
    if (operator !== undefined) {
      pieces.push(operator)
      at += operator.length + 1
    } else pieces.push(characters[at] as PathCharacter)
  }
  return pieces
}
