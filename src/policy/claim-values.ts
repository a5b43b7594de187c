/** Claims that are no text, compared with the patterns of rules (docs/resources.md, M7). */
import { type Pattern, patternMatches } from './patterns.ts'

const number = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/

/** The number that a text is, or undefined; what no double holds is none. */
export function numberOf(text: string): number | undefined {
  const value = number.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/** Whether numbers may match a pattern: an exact one that is a number matches what has its value, the start or end of one matches all. */
export function looksLikeNumber(pattern: Pattern): boolean {
  if (pattern.kind === 'any') return true
  return pattern.kind === 'exact' ? numberOf(pattern.text) !== undefined : /^[0-9.eE+-]*$/.test(pattern.text)
}

/** Whether `true` or `false`, in any case, matches a pattern. */
export function looksLikeBoolean(pattern: Pattern, value: boolean): boolean {
  return patternMatches(pattern.kind === 'any' ? pattern : { ...pattern, text: pattern.text.toLowerCase() }, String(value))
}

/** Whether a claim that is no text, or a list with such in it or with lists in it, reads like a pattern. A claim that is there matches `*`, whatever it is. */
export function otherValueMatches(pattern: Pattern, value: unknown): boolean {
  if (value === undefined) return false
  if (pattern.kind === 'any') return true
  const scalar = (one: unknown): boolean => {
    if (typeof one === 'boolean') return looksLikeBoolean(pattern, one)
    if (typeof one !== 'number' || !looksLikeNumber(pattern)) return false
    return pattern.kind !== 'exact' || numberOf(pattern.text) === one
  }
  const inner = (one: unknown): boolean => scalar(one) || (typeof one === 'string' && patternMatches(pattern, one))
  return scalar(value) || (Array.isArray(value) && value.some((one) => scalar(one) || (Array.isArray(one) && one.some(inner))))
}
