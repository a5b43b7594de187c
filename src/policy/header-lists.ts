/**
 * Comparison of headers as lists (RFC 9110, section 5.6.1) with the patterns of rules, in time linear in their length (docs/resources.md,
 * M6).
 */
import type { Pattern } from './patterns.ts'

/**
 * Whether any value of a header, or any element of the list that its values form, matches. `denies`: a match denies the request, so
 * ambiguous spacing counts as a match.
 */
export function headerMatches(pattern: Pattern, values: readonly string[] | undefined, denies: boolean): boolean {
  if (values === undefined) return false
  if (pattern.kind === 'any') return denies || values.some((value) => /[^, \t]/.test(value))
  const list = values.map((value) => value.replace(/^[ \t]+|[ \t]+$/g, '')).join(',')
  const { kind, text } = pattern
  const startsAt = (at: number) => at === 0 || list[at - 1] === ',' || list.slice(Math.max(0, at - 2), at) === ', '
  const endsAt = (at: number) => at === list.length || list[at] === ',' || list.slice(at, at + 2) === ' ,'
  for (let at = list.indexOf(text); at >= 0; at = list.indexOf(text, at + 1))
    if ((kind === 'suffix' || startsAt(at)) && (kind === 'prefix' || endsAt(at + text.length))) return true
  return denies && /, [ \t]|,\t|[ \t] ,|\t,/.test(list) && list.includes(text)
}
