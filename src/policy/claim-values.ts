/** Comparison of claims that are not strings with the patterns of rules (docs/resources.md, M7). */
import { type Pattern, patternMatches } from './patterns.ts'

const number = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/

/** Parses a decimal number; undefined for other text and for a number that is not finite as a double. */
export function numberOf(text: string): number | undefined {
  const value = number.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/**
 * Whether numbers may match a pattern. An exact pattern that is a number matches numbers with its value; a prefix or suffix that could be
 * part of a number matches all numbers.
 */
export function looksLikeNumber(pattern: Pattern): boolean {
  if (pattern.kind === 'any') return true
  return pattern.kind === 'exact' ? numberOf(pattern.text) !== undefined : /^[0-9.eE+-]*$/.test(pattern.text)
}

/** Whether the text of a boolean, in any case, matches a pattern. */
export function looksLikeBoolean(pattern: Pattern, value: boolean): boolean {
  return patternMatches(pattern.kind === 'any' ? pattern : { ...pattern, text: pattern.text.toLowerCase() }, String(value))
}

/**
 * Whether a value that is not a string matches a pattern by its text, directly, in a list, or in a list within a list. `*` matches any
 * value that exists.
 */
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
