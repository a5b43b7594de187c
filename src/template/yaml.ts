/** YAML as Go's `sigs.k8s.io/yaml` writes it: keys in order, text plain where it stays text, long lines folded at 80. */
import type { Budget } from './budget.ts'
import { type Functions, templateFunction } from './function.ts'
import { printedFloat, timeTextOf, toJson } from './printed.ts'
import { written as asWritten, fail, GoFloat, GoList, GoStruct, GoTime, isInt, isList, isMap, type Value } from './values.ts'

/** From this column on, a line is folded at its next space. */
const width = 80

/** Returns the YAML of a value, with a line end. */
export const toYaml = (value: Value, budget: Budget): string => new Writer(budget).document(value)

/** The functions for YAML. */
export const yamlFunctions: Functions = new Map([['toYaml', templateFunction(['any'], (budget, value) => toYaml(value, budget))]])

type Style = 'plain' | 'single' | 'double' | 'literal'

class Writer {
  readonly #budget: Budget
  readonly #parts: string[] = []
  #length = 0
  #column = 0

  constructor(budget: Budget) {
    this.#budget = budget
  }

  document(value: Value): string {
    this.#node(value, { indent: -1, isKey: false, isInList: false, depth: 0 })
    const text = this.#parts.join('')
    // A block scalar ends its last line itself.
    return text.endsWith('\n') ? text : `${text}\n`
  }

  #add(given: string): void {
    // A space stands before a value, but not at the beginning of the document.
    const text = this.#parts.length === 0 && given.startsWith(' ') ? given.slice(1) : given
    if (text === '') return
    this.#length += text.length
    this.#budget.text(this.#length)
    const line = text.lastIndexOf('\n')
    this.#column = line < 0 ? this.#column + [...text].length : text.length - line - 1
    this.#parts.push(text)
  }

  #line(indent: number): void {
    if (this.#parts.length > 0 && !this.#parts.at(-1)?.endsWith('\n')) this.#add('\n')
    if (indent > 0) this.#add(' '.repeat(indent))
  }

  #node(value: Value, place: { indent: number; isKey: boolean; isInList: boolean; depth: number }): void {
    this.#budget.deep(place.depth)
    this.#budget.spend(5 + (typeof value === 'string' ? value.length : 0))
    if (value instanceof GoList && value.isNil) return this.#add(' null')
    if (value instanceof GoStruct && value.text !== undefined) return this.#node(value.text, place)
    const map = value instanceof GoStruct ? value.fields : value
    if (isMap(map)) return this.#map(map, place)
    if (isList(value)) return this.#list(value, place)
    if (typeof value === 'string') return this.#text(value, Math.max(place.indent, 0) + 2, place.isKey)
    if (value instanceof GoTime) return this.#add(` ${JSON.stringify(timeTextOf(value))}`)
    this.#add(
      ` ${value instanceof GoFloat ? number(value, this.#budget) : value === null ? 'null' : isInt(value) ? toJson(value, this.#budget) : value}`,
    )
  }

  #map(map: ReadonlyMap<string, Value>, { indent, isInList, depth }: { indent: number; isInList: boolean; depth: number }): void {
    if (map.size === 0) return this.#add(' {}')
    const inner = indent < 0 ? 0 : indent + 2
    const keys = [...map.keys()]
    this.#budget.spend(map.size * 8 + keys.reduce((sum, key) => sum + key.length, 0))
    let isFirst = isInList
    for (const key of keys.sort(naturalOrder)) {
      if (isFirst) this.#add(' ')
      else this.#line(inner)
      isFirst = false
      this.#key(key, inner)
      this.#node(map.get(key) ?? null, { indent: inner, isKey: false, isInList: false, depth: depth + 1 })
    }
  }

  #key(key: string, indent: number): void {
    const isSimple = !key.includes('\n') && Buffer.byteLength(key) <= 128
    if (isSimple) {
      this.#text(key, indent, true)
      return this.#add(':')
    }
    this.#add('?')
    this.#text(key, indent + 2, false)
    this.#line(indent)
    this.#add(':')
  }

  #list(list: readonly Value[], { indent, isInList, depth }: { indent: number; isInList: boolean; depth: number }): void {
    if (list.length === 0) return this.#add(' []')
    // A list in a map stands at the column of its key.
    const inner = isInList ? indent + 2 : Math.max(indent, 0)
    let isFirst = isInList
    for (const item of list) {
      if (isFirst) this.#add(' ')
      else this.#line(inner)
      isFirst = false
      this.#add('-')
      this.#node(item, { indent: inner, isKey: false, isInList: true, depth: depth + 1 })
    }
  }

  /** Writes a text. Behind anything but the beginning of a line there is a space before it. */
  #text(given: string, indent: number, isKey: boolean): void {
    const text = asWritten(given)
    if (/[\x7f-\x84\x86-\x9f\ufffe\uffff]/.test(text)) return fail('yaml: control characters are not allowed')
    const style = styleOf(text, isKey)
    if (!isKey || this.#parts.at(-1)?.endsWith('?')) this.#add(' ')
    if (style === 'literal') return this.#literal(text, indent)
    const [quote, inner] = style === 'plain' ? ['', text] : style === 'single' ? ["'", text.replaceAll("'", "''")] : ['"', escaped(text)]
    this.#add(quote)
    if (isKey) this.#add(inner)
    else this.#folded(inner, indent, style)
    this.#add(quote)
  }

  /** Writes a text and breaks it at spaces from the last column on. */
  #folded(text: string, indent: number, style: Style): void {
    if (this.#column + text.length <= width) return this.#add(text)
    let isAfterSpace = false
    let piece = ''
    const letters = [...text]
    for (const [at, letter] of letters.entries()) {
      const isBreak = letter === ' ' && !isAfterSpace && this.#column + piece.length > width
      const isInner = style === 'plain' ? letters[at + 1] !== ' ' : at > 0 && at < letters.length - 1
      if (isBreak && isInner && (style === 'double' || letters[at + 1] !== ' ')) {
        this.#add(piece)
        piece = ''
        this.#add(`\n${' '.repeat(indent)}`)
        if (letters[at + 1] === ' ') piece = '\\'
      } else piece += letter
      isAfterSpace = letter === ' '
    }
    this.#add(piece)
  }

  #literal(text: string, indent: number): void {
    const hint = /^[ \n\r\u0085\u2028\u2029]/.test(text) ? '2' : ''
    const isEnd = (letter: string | undefined) => letter !== undefined && /^[\r\n\u0085\u2028\u2029]$/.test(letter)
    const chomp = !isEnd(text.at(-1)) ? '-' : text.length === 1 || isEnd(text.at(-2)) ? '+' : ''
    this.#add(`|${hint}${chomp}\n`)
    const pad = ' '.repeat(indent)
    this.#add(
      text
        .split(/(?<=\n)/)
        .map((line) => (line === '\n' ? line : pad + line))
        .join(''),
    )
  }
}

const number = ({ value }: GoFloat, budget: Budget): string => {
  const json = toJson(new GoFloat(value), budget)
  // What JSON writes without a point or an exponent is an integer to the reader of it.
  return /[.eE]/.test(json) || Math.abs(value) >= 2 ** 64 ? printedFloat(value) : json === '-0' ? '0' : json
}

const isLetter = (letter: string): boolean => /^\p{L}$/u.test(letter)
const isDigit = (letter: string | undefined): boolean => letter !== undefined && /^\p{Nd}$/u.test(letter)

/** The order of keys: letters behind others, numbers by their value. */
function naturalOrder(one: string, other: string): number {
  const [left, right] = [[...one], [...other]]
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const [mine, theirs] = [left[at] as string, right[at] as string]
    if (mine === theirs) continue
    const [isMine, isTheirs] = [isLetter(mine), isLetter(theirs)]
    if (isMine && isTheirs) return codeOrder(mine, theirs)
    if (isMine || isTheirs) return isTheirs ? -1 : 1
    return digitOrder(left, right, at)
  }
  return left.length - right.length
}

const codeOrder = (one: string, other: string): number => (one.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0)

function digitOrder(left: readonly string[], right: readonly string[], start: number): number {
  // Behind a digit other than zero, a zero is part of a number: it counts.
  let lead = 0n
  if (left[start] === '0' || right[start] === '0')
    for (let at = start - 1; at >= 0 && isDigit(left[at]); at--)
      if (left[at] !== '0') {
        lead = 1n
        break
      }
  const read = (letters: readonly string[]): { value: bigint; end: number } => {
    let [value, end] = [lead, start]
    for (; isDigit(letters[end]); end++) value = BigInt.asIntN(64, value * 10n + BigInt(((letters[end] as string).codePointAt(0) as number) - 48))
    return { value, end }
  }
  const [mine, theirs] = [read(left), read(right)]
  if (mine.value !== theirs.value) return mine.value < theirs.value ? -1 : 1
  return mine.end !== theirs.end ? mine.end - theirs.end : codeOrder(left[start] as string, right[start] as string)
}

const words: ReadonlySet<string> = new Set([
  ...[
    'y',
    'Y',
    'yes',
    'Yes',
    'YES',
    'true',
    'True',
    'TRUE',
    'on',
    'On',
    'ON',
    'n',
    'N',
    'no',
    'No',
    'NO',
    'false',
    'False',
    'FALSE',
    'off',
    'Off',
    'OFF',
  ],
  ...['', '~', 'null', 'Null', 'NULL', '.nan', '.NaN', '.NAN', '.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF', '-.inf', '-.Inf', '-.INF'],
])

/** Whether a reader takes a plain text for something else: a number, a date, a boolean, nil. */
function isOther(text: string): boolean {
  if (words.has(text)) return true
  if (!/^[-+.\d]/.test(text)) return false
  if (text.startsWith('.')) return /^\.[0-9][0-9_]*([eE][-+]?[0-9]+)?$/.test(text)
  const bare = text.replaceAll('_', '')
  if (/^[-+]?(0[xX][\da-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/.test(bare)) return fitsInteger(bare)
  if (/^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(bare)) return Number.isFinite(Number(bare))
  return isDate(text) || /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/.test(text)
}

function fitsInteger(text: string): boolean {
  const digits = text.replace(/^[-+]/, '')
  // Decimals that are too large for an integer are floats.
  if (/^[1-9]/.test(digits)) return true
  const value = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits)
  return value < 2n ** 64n || /^0[0-9]*$/.test(digits)
}

/** Whether a text is a timestamp of YAML: `2001-12-14`, with a time behind it or none. */
function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[tT]|[ \t]+)(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d*)?[ \t]*(?:Z|[+-]\d\d?(?::\d\d)?)?)?$/.exec(text)
  if (!match) return false
  const [year, month, day, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((part) => (part === undefined ? undefined : Number(part))) as number[]
  const date = new Date(Date.UTC(year ?? 0, (month ?? 1) - 1, day))
  return date.getUTCMonth() === (month ?? 1) - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60
}

/** Letters that are written as they are. */
const isPrintable = (text: string): boolean => !/[^\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u.test(text)

function styleOf(text: string, isKey: boolean): Style {
  // Line ends of Unicode are written as escapes, since readers of YAML change them.
  const isSpecial = !isPrintable(text) || /[\u0085\u2028\u2029]/.test(text)
  const hasBreak = /[\n\r\u0085\u2028\u2029]/.test(text)
  const isBreakSpace = /[\n\r\u0085\u2028\u2029] /.test(text)
  const isSpaceBreak = / [\n\r\u0085\u2028\u2029]/.test(text)
  if (text.includes('\n')) return isKey || isSpaceBreak || isSpecial || text.endsWith(' ') ? 'double' : 'literal'
  if (isOther(text)) return 'double'
  if (isSpecial || isSpaceBreak || isBreakSpace) return 'double'
  const isPlain =
    !hasBreak &&
    !/^ | $/.test(text) &&
    !/^(---|\.\.\.)/.test(text) &&
    !/^[#,[\]{}&*!|>'"%@`]/.test(text) &&
    !/^[?:-]([ \t]|$)/.test(text) &&
    !/:([ \t]|$)/.test(text) &&
    !/[ \t]#/.test(text)
  return isPlain ? 'plain' : 'single'
}

const escapes: Readonly<Record<string, string>> = {
  ...{ '\0': '0', '\x07': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '\x1b': 'e', '"': '"', '\\': '\\' },
  ...{ '\u0085': 'N', '\u00a0': '_', '\u2028': 'L', '\u2029': 'P' },
}

const escaped = (text: string): string =>
  text.replaceAll(/["\\]|[^\x20-\x7e]/gu, (letter) => {
    const code = letter.codePointAt(0) as number
    if (isPrintable(letter) && !/[\n\u0085\u2028\u2029\ufeff]/.test(letter) && letter !== '"' && letter !== '\\') return letter
    if (escapes[letter] !== undefined) return `\\${escapes[letter]}`
    const [mark, size] = code <= 0xff ? ['x', 2] : code <= 0xffff ? ['u', 4] : ['U', 8]
    return `\\${mark}${code
      .toString(16)
      .toUpperCase()
      .padStart(size as number, '0')}`
  })
