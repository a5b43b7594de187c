/** Functions for text. */
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { printed } from '../printed.ts'
import { quoted } from '../printf.ts'
import { bytesOf, fail, GoStringMap, isList, listOf, textOf, type Value } from '../values.ts'
import { parsedInt, textOfValue } from './casts.ts'
import { isSpace, lower, titled, upper } from './letters.ts'
import { connected, initials, pascal, swapped, untitled, wrapped } from './words.ts'

/** The text without white space at its ends, as Go sees it. */
const trimmed = (text: string): string => {
  let [from, to] = [0, text.length]
  while (from < to && isSpace(text[from] as string)) from++
  while (to > from && isSpace(text[to - 1] as string)) to--
  return text.slice(from, to)
}

/** Removes the letters of a set from both ends. */
function trimAll(cut: string, text: string): string {
  const letters = [...text]
  const gone = new Set(cut)
  let [from, to] = [0, letters.length]
  while (from < to && gone.has(letters[from] as string)) from++
  while (to > from && gone.has(letters[to - 1] as string)) to--
  return letters.slice(from, to).join('')
}

function repeat(budget: Budget, count: number, text: string): string {
  if (count < 0) return fail('strings: negative Repeat count')
  budget.text(count * text.length)
  return text.repeat(count)
}

function indent(budget: Budget, spaces: number, text: string): string {
  if (spaces < 0) return fail('strings: negative Repeat count')
  const lines = text.split('\n')
  budget.text(text.length + spaces * lines.length)
  const pad = ' '.repeat(spaces)
  return pad + lines.join(`\n${pad}`)
}

/** Replaces a text everywhere. An empty one stands between all letters. */
function replace(budget: Budget, old: string, by: string, text: string): string {
  const parts = old === '' ? ['', ...text, ''] : text.split(old)
  if (old === '' && text === '') return by
  budget.text(text.length + by.length * (parts.length - 1))
  return parts.join(by)
}

/** Splits a text; by an empty separator into its letters. At most `most` parts, all when it is negative. */
function parts(budget: Budget, separator: string, text: string, most = -1): string[] {
  if (most === 0) return []
  const all = separator === '' ? [...text] : text.split(separator)
  budget.make(all.length)
  if (most < 0 || all.length <= most) return all
  return [...all.slice(0, most - 1), all.slice(most - 1).join(separator)]
}

const numbered = (texts: readonly string[]): Value => new GoStringMap(texts.map((text, at) => [`_${at}`, text]))

function cut(from: number, to: number, bytes: Buffer): string {
  if (from < 0 || to < from || to > bytes.length) return fail(`slice bounds out of range [${from}:${to}] with length ${bytes.length}`)
  return textOf(bytes.subarray(from, to))
}

function substring(start: number, end: number, text: string): string {
  const bytes = bytesOf(text)
  if (start < 0) return cut(0, end, bytes)
  return cut(start, end < 0 || end > bytes.length ? bytes.length : end, bytes)
}

function truncated(count: number, text: string): string {
  const bytes = bytesOf(text)
  if (count < 0 && bytes.length + count > 0) return textOf(bytes.subarray(bytes.length + count))
  return count >= 0 && bytes.length > count ? textOf(bytes.subarray(0, count)) : text
}

function abbreviated(start: number, width: number, text: string): string {
  const bytes = bytesOf(text)
  if (text === '' || width < 4 || bytes.length <= width) return width < 4 && text !== '' ? '' : text
  let offset = Math.min(start, bytes.length)
  if (bytes.length - offset < width - 3) offset = bytes.length - (width - 3)
  if (offset <= 4) return `${cut(0, width - 3, bytes)}...`
  if (width < 7) return ''
  if (offset + width - 3 < bytes.length) return `...${abbreviated(0, width - 3, cut(offset, bytes.length, bytes))}`
  return `...${cut(bytes.length - (width - 3), bytes.length, bytes)}`
}

/** The elements of a list as texts, without nil. What is no list is one element. */
export function texts(value: Value, budget: Budget): string[] {
  if (value === null) return []
  if (!isList(value)) return [textOfValue(value, budget)]
  budget.make(value.length)
  return value.filter((item) => item !== null).map((item) => textOfValue(item, budget))
}

function join(budget: Budget, separator: string, value: Value): string {
  const all = texts(value, budget)
  budget.text(all.reduce((sum, text) => sum + text.length, separator.length * all.length))
  return all.join(separator)
}

/** A text that counts letters as bytes: those above 255 do not exist in it. */
const latin = (text: string): string => bytesOf(text).toString('latin1')

const shown = (budget: Budget, values: readonly Value[], show: (value: Value) => string): string => {
  const all = values.filter((value) => value !== null).map(show)
  budget.text(all.reduce((sum, text) => sum + text.length + 1, 0))
  return all.join(' ')
}

/** The functions by name. */
export const stringFunctions: Functions = new Map(
  Object.entries({
    hello: templateFunction([], () => 'Hello!'),
    abbrev: templateFunction(['int', 'string'], (_, width, text) => (width < 4 ? text : abbreviated(0, width, text))),
    abbrevboth: templateFunction(['int', 'int', 'string'], (_, left, right, text) =>
      right < 4 || (left > 0 && right < 7) ? text : abbreviated(left, right, text),
    ),
    trunc: templateFunction(['int', 'string'], (_, count, text) => truncated(count, text)),
    trim: templateFunction(['string'], (_, text) => trimmed(text)),
    upper: templateFunction(['string'], (_, text) => upper(text)),
    lower: templateFunction(['string'], (_, text) => lower(text)),
    title: templateFunction(['string'], (_, text) => titled(text)),
    untitle: templateFunction(['string'], (_, text) => untitled(text)),
    substr: templateFunction(['int', 'int', 'string'], (_, start, end, text) => substring(start, end, text)),
    repeat: templateFunction(['int', 'string'], repeat),
    trimall: templateFunction(['string', 'string'], (_, letters, text) => trimAll(letters, text)),
    trimAll: templateFunction(['string', 'string'], (_, letters, text) => trimAll(letters, text)),
    trimSuffix: templateFunction(['string', 'string'], (_, end, text) => (end !== '' && text.endsWith(end) ? text.slice(0, -end.length) : text)),
    trimPrefix: templateFunction(['string', 'string'], (_, start, text) => (text.startsWith(start) ? text.slice(start.length) : text)),
    nospace: templateFunction(['string'], (_, text) => {
      const letters = [...latin(text)].filter((letter) => !isSpace(letter)).join('')
      return letters.length === latin(text).length ? text : letters
    }),
    initials: templateFunction(['string'], (_, text) => initials(latin(text))),
    swapcase: templateFunction(['string'], (_, text) => swapped(text)),
    snakecase: templateFunction(['string'], (_, text) => connected(text, '_')),
    kebabcase: templateFunction(['string'], (_, text) => connected(text, '-')),
    camelcase: templateFunction(['string'], (_, text) => pascal(text)),
    wrap: templateFunction(['int', 'string'], (budget, width, text) => wrapped(budget, text, { width, line: '\n', breaksWords: false })),
    wrapWith: templateFunction(['int', 'string', 'string'], (budget, width, line, text) =>
      wrapped(budget, text, { width, line: line === '' ? '\n' : line, breaksWords: true }),
    ),
    contains: templateFunction(['string', 'string'], (_, part, text) => text.includes(part)),
    hasPrefix: templateFunction(['string', 'string'], (_, part, text) => text.startsWith(part)),
    hasSuffix: templateFunction(['string', 'string'], (_, part, text) => text.endsWith(part)),
    quote: templateFunction(['...any'], (budget, ...values) => shown(budget, values, (value) => quoted(textOfValue(value, budget)))),
    squote: templateFunction(['...any'], (budget, ...values) => shown(budget, values, (value) => `'${textOfValue(value, budget)}'`)),
    cat: templateFunction(['...any'], (budget, ...values) => shown(budget, values, (value) => printed(value, budget))),
    indent: templateFunction(['int', 'string'], indent),
    nindent: templateFunction(['int', 'string'], (budget, spaces, text) => `\n${indent(budget, spaces, text)}`),
    replace: templateFunction(['string', 'string', 'string'], replace),
    plural: templateFunction(['string', 'string', 'int'], (_, one, many, count) => (count === 1 ? one : many)),
    toString: templateFunction(['any'], (budget, value) => textOfValue(value, budget)),
    toStrings: templateFunction(['any'], (budget, value) => listOf('[]string', texts(value, budget))),
    atoi: templateFunction(['string'], (_, text) => Number(parsedInt(text, 10) ?? 0n)),
    split: templateFunction(['string', 'string'], (budget, separator, text) => numbered(parts(budget, separator, text))),
    splitList: templateFunction(['string', 'string'], (budget, separator, text) => listOf('[]string', parts(budget, separator, text))),
    splitn: templateFunction(['string', 'int', 'string'], (budget, separator, most, text) => numbered(parts(budget, separator, text, most))),
    join: templateFunction(['string', 'any'], join),
    fail: templateFunction(['string'], (_, text) => fail(text)),
  }),
)
