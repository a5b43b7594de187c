/** Letters as Go's package `unicode` sees them. */
import { written } from '../values.ts'

/** Whether a letter is white space (Go's `unicode.IsSpace`). */
export const isSpace = (letter: string): boolean => /^[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/.test(letter)

/** Whether a letter is a capital. */
export const isUpper = (letter: string): boolean => /^\p{Lu}$/u.test(letter)

/** Maps letters one by one: those that become several stay, as in Go. */
const mapped = (text: string, change: (letter: string) => string): string =>
  written(text).replaceAll(/[^\x00-\x7f]/gu, (letter) => {
    const changed = change(letter)
    return [...changed].length === 1 ? changed : letter
  })

const capital = (letter: string): string => letter.toUpperCase()
const small = (letter: string): string => letter.toLowerCase()

/** The text in capitals. */
export const upper = (text: string): string => mapped(text.replaceAll(/[a-z]+/g, capital), capital)

/** The text in small letters. */
export const lower = (text: string): string => mapped(text.replaceAll(/[A-Z]+/g, small), (letter) => (letter === '\u0130' ? 'i' : small(letter)))

/** The text with a capital at the beginning of each word (Go's `strings.Title`). */
export function titled(text: string): string {
  let isStart = true
  let result = ''
  for (const letter of written(text)) {
    result += isStart ? upper(letter) : letter
    isStart = isSeparator(letter)
  }
  return result
}

function isSeparator(letter: string): boolean {
  if (/^[\x00-\x7f]$/.test(letter)) return !/^[0-9A-Za-z_]$/.test(letter)
  return !/^[\p{L}\p{Nd}]$/u.test(letter) && isSpace(letter)
}
