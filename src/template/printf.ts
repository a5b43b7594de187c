/** Formats text (Go's package `fmt`, "Printing"). */
import type { Budget } from './budget.ts'
import { binaryText, exponentText, fixedText, hexText, significantText } from './floats.ts'
import { orderedKeys, printed, printedFloat } from './printed.ts'
import {
  bigOf,
  bytesOf,
  fail,
  GoFloat,
  type GoInt,
  GoList,
  GoStringMap,
  GoStruct,
  GoTime,
  isInt,
  isList,
  isMap,
  kindName,
  numberOf,
  typeName,
  type Value,
} from './values.ts'

interface Verb {
  readonly verb: string
  readonly flags: string
  readonly width: number | undefined
  readonly precision: number | undefined
  /** Whether the value is shown because it does not fit its verb: flags have the meaning that they have for numbers. */
  readonly isBad?: boolean
}

/** The maximum width and precision of Go. */
const widest = 1_000_000

/** The work of finding the digits of a float: it has up to a thousand. */
const floatWork = 500

/** Returns the formatted text. Faults of the format and the arguments appear in the text, as in Go: `%!d(string=x)`. */
export const printf = (format: string, args: readonly Value[], budget: Budget): string => new Formatter(format, args, budget).run()

class Formatter {
  readonly #format: string
  readonly #args: readonly Value[]
  readonly #budget: Budget
  readonly #parts: string[] = []
  #length = 0
  #at = 0
  #next = 0
  #isReordered = false
  #isGoodIndex = true
  #isAfterIndex = false

  constructor(format: string, args: readonly Value[], budget: Budget) {
    this.#format = format
    this.#args = args
    this.#budget = budget
  }

  run(): string {
    const format = this.#format
    while (this.#at < format.length) {
      const percent = format.indexOf('%', this.#at)
      this.#add(format.slice(this.#at, percent < 0 ? undefined : percent))
      if (percent < 0) break
      this.#at = percent + 1
      this.#verb()
    }
    if (!this.#isReordered && this.#next < this.#args.length) {
      const extra = this.#args.slice(this.#next)
      const texts = extra.map((value) => (value === null ? '<nil>' : `${typeName(value)}=${printed(value, this.#budget)}`))
      this.#add(`%!(EXTRA ${texts.join(', ')})`)
    }
    return this.#parts.join('')
  }

  #add(text: string): void {
    this.#length += text.length
    this.#room(0)
    this.#parts.push(text)
  }

  /** Checks the length before a text is made. */
  #room(length: number): void {
    if (this.#length + length > this.#budget.bounds.text) fail(`the text is longer than ${this.#budget.bounds.text} characters`)
  }

  #place(): Place {
    let reserved = 0
    const room = (length: number) => this.#room(reserved + length)
    const reserve = (length: number) => room((reserved += length) - reserved)
    return { budget: this.#budget, room, reserve }
  }

  #verb(): void {
    const format = this.#format
    this.#isGoodIndex = true
    const start = this.#at
    while ('#0+- '.includes(format[this.#at] ?? 'x')) this.#at++
    let flags = format.slice(start, this.#at)
    this.#isAfterIndex = false
    this.#index()
    let width: number | undefined
    if (format[this.#at] === '*') {
      this.#at++
      width = this.#starred('WIDTH')
      if (width !== undefined && width < 0) {
        width = -width
        flags = `${flags.replaceAll('0', '')}-`
      }
      this.#isAfterIndex = false
    } else {
      width = this.#digits()
      if (this.#isAfterIndex && width !== undefined) this.#isGoodIndex = false
    }
    let precision: number | undefined
    if (format[this.#at] === '.' && this.#at + 1 < format.length) {
      this.#at++
      if (this.#isAfterIndex) this.#isGoodIndex = false
      this.#index()
      if (format[this.#at] === '*') {
        this.#at++
        precision = this.#starred('PREC')
        if (precision !== undefined && precision < 0) {
          precision = undefined
          this.#add('%!(BADPREC)')
        }
        this.#isAfterIndex = false
      } else precision = this.#digits() ?? 0
    }
    if (!this.#isAfterIndex) this.#index()
    const code = format.codePointAt(this.#at)
    if (code === undefined) return this.#add('%!(NOVERB)')
    const verb = String.fromCodePoint(code)
    this.#at += verb.length
    if (verb === '%') return this.#add('%')
    if (!this.#isGoodIndex) return this.#add(`%!${verb}(BADINDEX)`)
    if (this.#next >= this.#args.length) return this.#add(`%!${verb}(MISSING)`)
    this.#add(formatted({ verb, flags, width, precision }, this.#args[this.#next++] ?? null, this.#place()))
  }

  /** Reads an explicit index of an argument, `[2]`. */
  #index(): void {
    const format = this.#format
    if (format[this.#at] !== '[') {
      this.#isAfterIndex = false
      return
    }
    this.#isReordered = true
    const close = format.indexOf(']', this.#at)
    const digits = close < 0 ? '' : format.slice(this.#at + 1, close)
    const index = /^[0-9]{1,7}$/.test(digits) ? Number(digits) : -1
    this.#at = close < 0 ? this.#at + 1 : close + 1
    this.#isAfterIndex = index >= 1 && index <= this.#args.length
    if (this.#isAfterIndex) this.#next = index - 1
    else {
      this.#isGoodIndex = false
      this.#isAfterIndex = close >= 0 && index >= 0
    }
  }

  #digits(): number | undefined {
    const start = this.#at
    while (/^[0-9]/.test(this.#format[this.#at] ?? '')) this.#at++
    if (this.#at === start) return undefined
    const value = Number(this.#format.slice(start, this.#at))
    if (value <= widest) return value
    // As in Go, nothing is read behind a number that is too large.
    this.#at = this.#format.length
    return undefined
  }

  #starred(what: string): number | undefined {
    const value = this.#args[this.#next]
    const isGiven = this.#next < this.#args.length
    if (isGiven) this.#next++
    if (isGiven && value !== undefined && isInt(value) && Math.abs(numberOf(value)) <= widest) return numberOf(value)
    this.#add(`%!(BAD${what})`)
    return undefined
  }
}

interface Place {
  readonly budget: Budget
  /** Checks that there is room for a text of the length before it is made. */
  readonly room: (length: number) => void
  /** Takes room from the text. */
  readonly reserve: (length: number) => void
}

function formatted(spec: Verb, value: Value, place: Place, depth = 0): string {
  const { budget } = place
  budget.deep(depth)
  budget.spend(1)
  const within = (entry: Value): string => {
    if (entry === null) return spec.verb === 'v' && spec.flags.includes('#') && !spec.isBad ? 'interface {}(nil)' : '<nil>'
    const text = formatted(spec, entry, place, depth + 1)
    budget.spend(text.length)
    return text
  }
  // The widest that the text of one value becomes for its format. A value without a text of its own has those of its elements.
  const isMessage = value instanceof GoStruct && value.text === undefined && kindName(value) === 'struct'
  if (!isList(value) && !isMap(value) && !isMessage) {
    const widestText = Math.max(spec.width ?? 0, spec.precision ?? 0, typeof value === 'string' ? value.length : 1)
    place.room(widestText)
    // Elements of lists and maps are joined: they are counted until then.
    if (depth > 0) place.reserve(widestText)
  }
  if (spec.verb === 'T') return padded(spec, value === null ? '<nil>' : typeName(value).slice(0, spec.precision))
  if (spec.verb === 'p') return `%!p(${value === null ? '<nil>' : `${typeName(value)}=${printed(value, budget)}`})`
  if (spec.verb === 'v' && spec.flags.includes('#') && !spec.isBad) return syntax(spec, value, within, budget)
  if (isList(value) && value instanceof GoList && value.type === '[]uint8' && 'sxXq'.includes(spec.verb)) return within(null)
  if (isList(value)) return `[${value.map(within).join(' ')}]`
  if (isMap(value))
    return `map[${orderedKeys(value, budget)
      .map((key) => `${within(key)}:${within(value.get(key) ?? null)}`)
      .join(' ')}]`
  if (isMessage) return `{${fieldsOf(value, within, spec.verb === 'v' && spec.flags.includes('+') && !spec.isBad ? ' ' : undefined)}}`
  const text = value === null ? (spec.verb === 'v' ? '<nil>' : undefined) : scalar(spec, value, budget)
  if (text !== undefined) return padded(spec, text, !'cq'.includes(spec.verb) && (isInt(value) || value instanceof GoFloat))
  return `%!${spec.verb}(${value === null ? '<nil>' : `${typeName(value)}=${formatted({ ...spec, verb: 'v', isBad: true }, value, place, depth + 1)}`})`
}

/** The value in the syntax of Go (`%#v`). */
function syntax(spec: Verb, value: Value, within: (entry: Value) => string, budget: Budget): string {
  if (value === null) return padded(spec, '<nil>')
  const element = (entry: Value) => (value instanceof GoList || value instanceof GoStringMap ? within(entry) : within(entry))
  if (isList(value)) return `${typeName(value)}{${value.map(element).join(', ')}}`
  if (isMap(value))
    return `${typeName(value)}{${orderedKeys(value, budget)
      .map((key) => `${within(key)}:${element(value.get(key) ?? null)}`)
      .join(', ')}}`
  if (value instanceof GoStruct && kindName(value) === 'struct') return `${value.type}{${fieldsOf(value, within, ', ')}}`
  return padded(spec, scalar(spec, value, budget) ?? '', isInt(value) || value instanceof GoFloat)
}

/** The fields of a message: with their names where `separator` is given, else their values with spaces. */
const fieldsOf = ({ fields }: GoStruct, within: (entry: Value) => string, separator?: string): string =>
  [...fields].map(([name, field]) => (separator === undefined ? within(field) : `${name}:${within(field)}`)).join(separator ?? ' ')

function scalar(spec: Verb, value: NonNullable<Value>, budget: Budget): string | undefined {
  if (typeof value === 'string') return textForm(spec.isBad ? { ...spec, flags: spec.flags.replaceAll('#', '') } : spec, value)
  if (typeof value === 'boolean') return 'vt'.includes(spec.verb) ? String(value) : undefined
  // With `%v` these flags select Go syntax, not a number format.
  const { flags } = spec
  const asked = spec.verb === 'v' && !spec.isBad ? { ...spec, flags: flags.replaceAll(/[+#]/g, '') } : spec
  if (isInt(value)) return wholeForm(asked, value)
  if (value instanceof GoFloat) {
    budget.spend(floatWork)
    return floatForm(asked, value.value)
  }
  if (value instanceof GoTime || (value instanceof GoStruct && value.text !== undefined)) {
    // Go shows fields of its own then, some of which are addresses.
    const isForm = 'vsqxX'.includes(spec.verb) && !(spec.verb === 'v' && flags.includes('#'))
    return isForm
      ? textForm(spec, printed(value, budget))
      : fail(`%${flags}${spec.verb} of a ${typeName(value)}: it has no form but its text (%s, %v, %q, %x)`)
  }
  return 'vs'.includes(spec.verb) ? printed(value, budget) : undefined
}

function textForm({ verb, flags, precision }: Verb, value: string): string | undefined {
  const cut = precision === undefined ? value : [...value].slice(0, precision).join('')
  const upper = verb === 'X'
  switch (verb) {
    case 's':
      return cut
    case 'v':
      return flags.includes('#') ? quoted(cut) : cut
    case 'q':
      return flags.includes('#') && !cut.includes('`') && !/[^\P{Cc}\t]|\ufeff/u.test(cut) ? `\`${cut}\`` : quoted(cut, flags.includes('+'))
    case 'x':
    case 'X': {
      const hex = bytesOf(value).subarray(0, precision).toString('hex')
      const prefix = flags.includes('#') && hex !== '' ? '0x' : ''
      const spaced = prefix + (flags.includes(' ') ? hex.replaceAll(/(..)(?=.)/g, `$1 ${prefix}`) : hex)
      return upper ? spaced.toUpperCase() : spaced
    }
    default:
      return undefined
  }
}

const bases: Readonly<Record<string, number>> = { d: 10, v: 10, b: 2, o: 8, O: 8, x: 16, X: 16 }
const prefixes: Readonly<Record<string, string>> = { b: '0b', o: '0', O: '0', x: '0x', X: '0X' }

function wholeForm({ verb, flags, width, precision }: Verb, given: number | GoInt): string | undefined {
  const base = bases[verb]
  const value = bigOf(given)
  if (base === undefined) {
    const code = value >= 0n && value <= 0x10ffffn && (value < 0xd800n || value > 0xdfffn) ? Number(value) : 0xfffd
    const letter = String.fromCodePoint(code)
    if (verb === 'c') return letter
    if (verb === 'q') return `'${letter === "'" ? "\\'" : quoted(letter, flags.includes('+')).slice(1, -1).replace('\\"', '"')}'`
    if (verb !== 'U') return undefined
    const digits = BigInt.asUintN(64, value)
      .toString(16)
      .toUpperCase()
      .padStart(precision ?? 4, '0')
      .padStart(4, '0')
    return `U+${digits}${flags.includes('#') && value >= 0n && value <= 0x10ffffn && isPrintable(letter) ? ` '${letter}'` : ''}`
  }
  const sign = value < 0n ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  if (precision === 0 && value === 0n) return ''
  const prefix = flags.includes('#') ? (prefixes[verb] ?? '') : ''
  let digits = (value < 0n ? -value : value).toString(base)
  // Zero padding applies only without a precision.
  const filled = flags.includes('0') && !flags.includes('-') && precision === undefined ? (width ?? 0) - sign.length : (precision ?? 0)
  digits = digits.padStart(filled, '0')
  const lead = `${verb === 'O' ? '0o' : ''}${base === 8 && digits.startsWith('0') ? '' : prefix}`
  return sign + lead + (verb === 'X' ? digits.toUpperCase() : digits)
}

function floatForm({ verb, flags, width, precision }: Verb, value: number): string | undefined {
  if (!'vgGeEfFbxX'.includes(verb)) return undefined
  const sign = value < 0 || Object.is(value, -0) ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  if (!Number.isFinite(value)) {
    if (Number.isNaN(value)) return `${sign}NaN`
    return `${sign === '' ? '+' : sign}Inf`
  }
  let text = digitsOf(verb, Math.abs(value), precision)
  if (flags.includes('#') && verb !== 'b') text = withPoint(verb, text, precision)
  const filled = flags.includes('0') && !flags.includes('-') ? (width ?? 0) - sign.length : 0
  return sign + ('EGX'.includes(verb) ? text.toUpperCase() : text).padStart(filled, '0')
}

function digitsOf(verb: string, value: number, precision: number | undefined): string {
  switch (verb) {
    case 'f':
    case 'F':
      return fixedText(value, precision ?? 6)
    case 'e':
    case 'E':
      return exponentText(value, precision ?? 6)
    case 'b':
      return binaryText(value)
    case 'x':
    case 'X':
      return hexText(value, precision)
    default:
      return precision === undefined ? printedFloat(value) : significantText(value, precision)
  }
}

/** The number with a decimal point and the zeros at its end (flag `#`). */
function withPoint(verb: string, text: string, precision: number | undefined): string {
  const [, mantissa = '', tail = ''] = /^(0x[^p]*|[^ep]*)(.*)$/.exec(text) ?? []
  if (!'vgG'.includes(verb)) return `${mantissa.includes('.') ? mantissa : `${mantissa}.`}${tail}`
  const significant = mantissa.replace('.', '').replace(/^0+/, '').length
  const missing = (precision ?? 6) - significant - (mantissa === '0' ? 1 : 0)
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.`}${'0'.repeat(Math.max(missing, 0))}${tail}`
}

function padded({ flags, width = 0 }: Verb, text: string, isNumber = false): string {
  const missing = width - [...text].length
  if (missing <= 0) return text
  if (flags.includes('-')) return text + ' '.repeat(missing)
  return (flags.includes('0') && !isNumber ? '0' : ' ').repeat(missing) + text
}

const escapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** Quotes text as Go does; with letters of ASCII only where asked. */
export function quoted(text: string, isAscii = false): string {
  const inner = text.replaceAll(/["\\]|[^ -~]/gu, (letter) => {
    const code = letter.codePointAt(0) as number
    if (escapes[letter] !== undefined) return escapes[letter]
    if (!isAscii && isPrintable(letter)) return letter
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return `"${inner}"`
}

/** Whether Go prints a character unescaped: letters, marks, numbers, punctuation, symbols. */
export const isPrintable = (letter: string): boolean => letter === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(letter)
