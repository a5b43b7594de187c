/** The printed form of values (Go's `fmt`, verb `%v`), and their JSON. */
import type { Budget } from './budget.ts'
import { timeText } from './time.ts'
import { bigOf, bytesOf, fail, GoFloat, GoInt, GoList, GoStruct, GoTime, isList, isMap, sortedKeys, textOf, type Value } from './values.ts'

/** The work of looking at one element of a list or map. */
const elementWork = 5

/** Returns the text of a value; `<nil>` for nil. Throws a TemplateError when the value is nested too deeply or its text is too long. */
export function printed(value: Value, budget: Budget, depth = 0): string {
  budget.deep(depth)
  if (value === null) return '<nil>'
  if (typeof value === 'string') {
    if (depth > 0) budget.spend(value.length + elementWork)
    return value
  }
  budget.spend(elementWork)
  if (value instanceof GoFloat) return printedFloat(value.value)
  if (value instanceof GoInt) return String(value.value)
  if (isList(value)) return `[${value.map((entry) => printed(entry, budget, depth + 1)).join(' ')}]`
  if (isMap(value)) return `map[${entriesOf(value, budget, (key, entry) => `${key}:${printed(entry, budget, depth + 1)}`).join(' ')}]`
  if (value instanceof GoStruct) return value.text ?? `{${[...value.fields.values()].map((field) => printed(field, budget, depth + 1)).join(' ')}}`
  return value instanceof GoTime ? timeText(value) : String(value)
}

/** The work of putting one key of a map in order. */
const keyWork = 8

/** Returns the keys of a map in order. */
export function orderedKeys(map: ReadonlyMap<string, Value>, budget: Budget): string[] {
  budget.spend(map.size * keyWork)
  return sortedKeys(map)
}

function entriesOf(map: ReadonlyMap<string, Value>, budget: Budget, text: (key: string, entry: Value) => string): string[] {
  return orderedKeys(map, budget).map((key) => {
    budget.spend(key.length)
    return text(key, map.get(key) ?? null)
  })
}

/** Formats a float in the shortest notation, with an exponent below 1e-4 and from 10^`largest` on. */
export function printedFloat(value: number, largest = 6): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < largest) return plainFloat(value, mantissa, power)
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** A float without an exponent, however large. */
function plainFloat(value: number, mantissa: string, power: number): string {
  const text = String(value)
  if (!text.includes('e')) return text
  const digits = mantissa.replace(/[-.]/g, '')
  return `${value < 0 ? '-' : ''}${power < 0 ? `0.${'0'.repeat(-power - 1)}${digits}` : digits.padEnd(power + 1, '0')}`
}

/** How JSON is written. */
export interface JsonStyle {
  /** Whether `<`, `>` and `&` are escaped. */
  readonly isHtml: boolean
  /** The indentation of one level; undefined for one line. */
  readonly indent?: string
}

/**
 * Encodes a value as Go's `encoding/json` does: keys sorted; `<`, `>`, `&` and line separators escaped. Undefined when the value has none,
 * such as an infinite number.
 */
export function toJson(value: Value, budget: Budget, style: JsonStyle = { isHtml: true }, depth = 0): string {
  budget.deep(depth)
  budget.spend(elementWork + (typeof value === 'string' ? value.length : 0))
  if (value === null) return 'null'
  if (typeof value === 'string') return jsonText(value, style.isHtml)
  if (value instanceof GoFloat) return jsonFloat(value.value)
  if (value instanceof GoInt) return String(bigOf(value))
  const inner = (entry: Value) => toJson(entry, budget, style, depth + 1)
  const colon = style.indent === undefined ? ':' : ': '
  if (value instanceof GoList && value.isNil) return 'null'
  const wrapped = (open: string, items: readonly string[], close: string) => `${open}${itemsOf(items, style, budget, depth)}${close}`
  if (isList(value)) return wrapped('[', value.map(inner), ']')
  if (isMap(value))
    return wrapped(
      '{',
      entriesOf(value, budget, (key, entry) => `${jsonText(key, style.isHtml)}${colon}${inner(entry)}`),
      '}',
    )
  if (value instanceof GoStruct && value.text !== undefined) return jsonText(value.text, style.isHtml)
  if (value instanceof GoStruct)
    return wrapped(
      '{',
      [...value.fields].map(([key, field]) => `${jsonText(key, style.isHtml)}${colon}${inner(field)}`),
      '}',
    )
  return value instanceof GoTime ? jsonText(timeTextOf(value), style.isHtml) : String(value)
}

/** A moment as JSON has it. */
export const timeTextOf = (value: GoTime): string => timeText(value, '2006-01-02T15:04:05.999999999Z07:00')

/** Joins what is within brackets, with the indentation of its depth, which is work as the items are. */
function itemsOf(items: readonly string[], { indent }: JsonStyle, budget: Budget, depth: number): string {
  if (indent === undefined || items.length === 0) return items.join(',')
  budget.spend((items.length + 1) * indent.length * (depth + 1))
  const line = `\n${indent.repeat(depth)}`
  return `${items.map((item) => `${line}${indent}${item}`).join(',')}${line}`
}

/** Formats a float as Go's `encoding/json` does. */
function jsonFloat(value: number): string {
  if (!Number.isFinite(value)) return fail(`json: unsupported value: ${printedFloat(value)}`)
  const size = Math.abs(value)
  if (size === 0 || (size >= 1e-6 && size < 1e21)) return Object.is(value, -0) ? '-0' : plainJson(value)
  return value.toExponential().replace(/e([+-])/, (_, sign: string) => `e${sign}`)
}

function plainJson(value: number): string {
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  return plainFloat(value, mantissa, Number(exponent))
}

const jsonEscapes: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Encodes a text in JSON as Go does. A byte that is not UTF-8 is the escape of U+FFFD. */
export const jsonText = (text: string, isHtml = true): string => {
  const plain = text.isWellFormed() ? text : textOf(bytesOf(text)).replaceAll(/(?<![\ud800-\udbff])[\udc00-\udfff]/g, broken)
  const escaped = plain.replaceAll(isHtml ? /["\\\x00-\x1f<>&\u2028\u2029]/g : /["\\\x00-\x1f\u2028\u2029]/g, escapeOf)
  return `"${escaped.replaceAll(broken, '\\ufffd')}"`
}

/** Stands for a byte that is not UTF-8: no text has a letter that is none. */
const broken = '\ud800'

const escapeOf = (letter: string): string => jsonEscapes[letter] ?? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
