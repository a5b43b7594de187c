/** Translates header conditions of rules to RBAC principals (docs/resources.md, M6). */
import type { Pattern } from '../../policy/patterns.ts'
import { allIds, anyId, type Comparison, type Principal, regexMatch, type StringMatch, textMatch } from './matchers.ts'

/**
 * Spacing around commas with more than one space, for which the comparisons of single elements do not work: if it occurs, the text is
 * searched in the whole header.
 */
const wideSpacing = [',  ', ', \t', ',\t', '  ,', '\t ,', '\t,']

/**
 * Returns a principal that matches if any value of a header matches. The value may be any element of a comma-separated list, on one line or
 * several: depending on its release, Envoy joins several lines with commas or compares each. `denies`: a match denies the request.
 */
export function headerIds(name: string, patterns: readonly Pattern[], denies: boolean): Principal {
  const isAny = patterns.some(({ kind }) => kind === 'any')
  if (isAny && denies) return { identifier: { case: 'header', value: { name, headerMatchSpecifier: { case: 'presentMatch', value: true } } } }
  const matching = (match: StringMatch): Principal => ({
    identifier: { case: 'header', value: { name, headerMatchSpecifier: { case: 'stringMatch', value: match } } },
  })
  if (isAny) return matching(regexMatch('.*[^, \\t].*'))
  const value = (comparison: Comparison, text: string) => matching(textMatch(comparison, text))
  const texts = patterns.flatMap((pattern) => ('text' in pattern ? [pattern] : []))
  const found = texts.flatMap(({ kind, text }) => elementMatches(kind, text).map(([comparison, part]) => value(comparison, part)))
  if (!denies) return anyId(found)
  const anywhere = anyId(texts.map(({ text }) => value('contains', text)))
  return anyId([...found, allIds([anyId(wideSpacing.map((spacing) => value('contains', spacing))), anywhere])])
}

/** Returns comparisons with the whole header, of which one holds if an element of the list matches. */
function elementMatches(kind: 'exact' | 'prefix' | 'suffix', text: string): [Comparison, string][] {
  const starts = [',', ', ']
  const ends = [',', ' ,']
  if (kind === 'prefix') return [['prefix', text], ...starts.map((start): [Comparison, string] => ['contains', start + text])]
  if (kind === 'suffix') return [['suffix', text], ...ends.map((end): [Comparison, string] => ['contains', text + end])]
  return [
    ['exact', text],
    ...ends.map((end): [Comparison, string] => ['prefix', text + end]),
    ...starts.map((start): [Comparison, string] => ['suffix', start + text]),
    ...starts.flatMap((start) => ends.map((end): [Comparison, string] => ['contains', start + text + end])),
  ]
}
