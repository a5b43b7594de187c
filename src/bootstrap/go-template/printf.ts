/** Formats text (Go's package `fmt`, "Printing"). */
import { deepest, GoFloat, isList, isMap, printed, printedFloat, sortedKeys, TemplateError, textLimit, typeName, type Value } from './values.ts'

interface Verb {
  readonly verb: string
  readonly flags: string
  readonly width: number | undefined
  readonly precision: number | undefined
}

/** The maximum width and precision. Larger ones are an error. */
const widest = 1_000_000

/** What is left of the length of one formatted text. It is taken before a text is made, so that no text is made that is longer. */
class Room {
  #left = textLimit

  take(length: number): void {
    this.#left -= length
    if (this.#left < 0) throw new TemplateError(`the text is longer than ${textLimit} characters`)
  }
}

/** Returns the formatted text. Faults of the format and the arguments appear in the text, as in Go: `%!d(string=x)`. */
export function printf(format: string, args: readonly Value[]): string {
  let next = 0
  let isOrdered = true
  const room = new Room()
  const pattern = /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?(?:\[(\d{1,6})\])?([\s\S]?)/gu
  const text = format.replaceAll(
    pattern,
    (_, flags: string, width: string | undefined, precision: string | undefined, argument: string | undefined, verb: string) => {
      if (verb === '') return '%!(NOVERB)'
      if (verb === '%') return '%'
      const size = (given: string | undefined, what: string): number | string | undefined => {
        if (given !== '*') return given === undefined ? undefined : Number(given || '0')
        const value = args[next++]
        return typeof value === 'number' && Math.abs(value) <= widest ? value : `%!(BAD${what})`
      }
      const [wide, fine] = [size(width, 'WIDTH'), size(precision, 'PREC')]
      const bad = [wide, fine].filter((value) => typeof value === 'string').join('')
      if (argument !== undefined) {
        isOrdered = false
        next = Number(argument) - 1
      }
      if (next < 0 || (argument !== undefined && next >= args.length)) return `${bad}%!${verb}(BADINDEX)`
      if (next >= args.length) return `${bad}%!${verb}(MISSING)`
      const isLeft = typeof wide === 'number' && wide < 0
      const spec = {
        verb,
        flags: isLeft ? `${flags}-` : flags,
        width: typeof wide === 'number' ? Math.abs(wide) : undefined,
        precision: typeof fine === 'number' && fine >= 0 ? fine : undefined,
      }
      if ((spec.width ?? 0) > widest || (spec.precision ?? 0) > widest) throw new TemplateError('printf: a field is wider than 1000000')
      return bad + formatted(spec, args[next++] ?? null, room)
    },
  )
  const extra = (isOrdered ? args.slice(next) : []).map((value) => (value === null ? '<nil>' : `${typeName(value)}=${printed(value)}`))
  return extra.length > 0 ? `${text}%!(EXTRA ${extra.join(', ')})` : text
}

function formatted(spec: Verb, value: Value, room: Room, depth = 0): string {
  if (depth > deepest) throw new TemplateError('a value is nested too deep to be printed')
  const within = (each: Verb, entry: Value): string => (entry === null ? '<nil>' : formatted(each, entry, room, depth + 1))
  // The widest that the text of one value becomes for its format. A value without a text of its own has those of its elements.
  room.take(isList(value) || isMap(value) ? 2 : Math.max(spec.width ?? 0, spec.precision ?? 0, typeof value === 'string' ? value.length : 1))
  if (spec.verb === 'T') return padded(spec, typeName(value))
  if (isList(value)) return `[${value.map((entry) => within(spec, entry)).join(' ')}]`
  if (isMap(value))
    return `map[${sortedKeys(value)
      .map((key) => `${within(spec, key)}:${within(spec, value.get(key) ?? null)}`)
      .join(' ')}]`
  const text = value === null ? (spec.verb === 'v' ? '<nil>' : undefined) : scalar(spec, value)
  if (text !== undefined) return padded(spec, text, typeof value === 'number' || value instanceof GoFloat)
  return `%!${spec.verb}(${value === null ? '<nil>' : `${typeName(value)}=${formatted({ ...spec, verb: 'v' }, value, room, depth + 1)}`})`
}

function scalar(spec: Verb, value: NonNullable<Value>): string | undefined {
  if (typeof value === 'string') return textForm(spec, value)
  if (typeof value === 'boolean') return 'vt'.includes(spec.verb) ? String(value) : undefined
  // With `%v` these flags select Go syntax, not a number format.
  const { flags } = spec
  const asked = spec.verb === 'v' ? { ...spec, flags: flags.replaceAll(/[+#]/g, '') } : spec
  if (typeof value === 'number') return wholeForm(asked, value)
  if (value instanceof GoFloat) return floatForm(asked, value.value)
  return spec.verb === 'v' ? printed(value) : undefined
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
      return flags.includes('#') && !value.includes('`') && !/[^\P{Cc}\t]/u.test(value) ? `\`${cut}\`` : quoted(cut)
    case 'x':
    case 'X': {
      const hex = Buffer.from(value).subarray(0, precision).toString('hex')
      const prefix = flags.includes('#') && hex !== '' ? '0x' : ''
      const spaced = prefix + (flags.includes(' ') ? hex.replaceAll(/(..)(?=.)/g, `$1 ${prefix}`) : hex)
      return upper ? spaced.toUpperCase() : spaced
    }
    default:
      return undefined
  }
}

const bases: Readonly<Record<string, number>> = { d: 10, v: 10, b: 2, o: 8, O: 8, x: 16, X: 16 }
const prefixes: Readonly<Record<string, string>> = { b: '0b', o: '0', x: '0x', X: '0X' }

function wholeForm({ verb, flags, width, precision }: Verb, value: number): string | undefined {
  const base = bases[verb]
  if (base === undefined) {
    const letter = value >= 0 && value <= 0x10ffff ? String.fromCodePoint(value) : '\ufffd'
    if (verb === 'c') return letter
    if (verb === 'q') return `'${letter === "'" ? "\\'" : quoted(letter).slice(1, -1).replace('\\"', '"')}'`
    return verb === 'U' ? `U+${value.toString(16).toUpperCase().padStart(4, '0')}${flags.includes('#') ? ` '${letter}'` : ''}` : undefined
  }
  const sign = value < 0 ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const prefix = verb === 'O' ? '0o' : flags.includes('#') ? (prefixes[verb] ?? '') : ''
  const digits = precision === 0 && value === 0 ? '' : Math.abs(value).toString(base)
  // Zero padding applies only without a precision.
  const filled = flags.includes('0') && !flags.includes('-') && precision === undefined ? (width ?? 0) - sign.length : (precision ?? 0)
  const text = digits.padStart(filled, '0')
  return sign + prefix + (verb === 'X' ? text.toUpperCase() : text)
}

function floatForm({ verb, flags, width, precision }: Verb, value: number): string | undefined {
  const unsigned = Math.abs(value)
  const exponent = (text: string) => text.replace(/e([+-])(\d)$/, 'e$10$2')
  let text: string
  switch (verb) {
    case 'f':
    case 'F':
      text = precision !== undefined && precision > 100 ? unsigned.toFixed(100).padEnd(precision, '0') : unsigned.toFixed(precision ?? 6)
      break
    case 'e':
    case 'E':
      text = exponent(unsigned.toExponential(Math.min(precision ?? 6, 100)))
      break
    case 'g':
    case 'G':
    case 'v':
      text = precision === undefined ? printedFloat(unsigned) : shortened(unsigned, Math.min(Math.max(precision, 1), 100), exponent)
      break
    default:
      return undefined
  }
  const sign = value < 0 || Object.is(value, -0) ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const filled = flags.includes('0') && !flags.includes('-') ? (width ?? 0) - sign.length : 0
  return sign + (verb === 'E' || verb === 'G' ? text.toUpperCase() : text).padStart(filled, '0')
}

/** Formats a float with the given number of significant digits, without trailing zeros. */
function shortened(value: number, digits: number, exponent: (text: string) => string): string {
  const power = value === 0 ? 0 : Number(value.toExponential(digits - 1).split('e')[1])
  if (power < -4 || power >= digits) return exponent(value.toExponential(digits - 1).replace(/\.?0+e/, 'e'))
  return value
    .toFixed(digits - 1 - power)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '')
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

/** Quotes text as Go does. */
function quoted(text: string): string {
  const inner = text.replaceAll(/["\\]|[^ -~]/gu, (letter) => {
    const code = letter.codePointAt(0) as number
    if (escapes[letter] !== undefined) return escapes[letter]
    if (isPrintable(letter)) return letter
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return `"${inner}"`
}

/** Whether Go prints a character unescaped: letters, marks, numbers, punctuation, symbols. */
export const isPrintable = (letter: string): boolean => letter === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(letter)
