/** The values of templates (Go's `text/template`), and their printed form (Go's `fmt`, verb `%v`). */

/** A fault of a template, or of its use of the data. */
export class TemplateError extends Error {}

/** The maximum length of the texts that a function takes together, and of the text that it returns, in characters. */
export const textLimit = 2 * 1024 * 1024

/** Go's `float64`. Integers are plain numbers. */
export class GoFloat {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** A Go message. Access to a field that it does not declare is an error. */
export class GoStruct {
  /** The name of its type in errors. */
  readonly type: string
  readonly fields: ReadonlyMap<string, Value>

  constructor(type: string, fields: ReadonlyMap<string, Value>) {
    this.type = type
    this.fields = fields
  }
}

/** A value: nil, a boolean, a number, text, a list, a map or a message. */
export type Value = null | boolean | number | string | GoFloat | GoStruct | readonly Value[] | ReadonlyMap<string, Value>

/** Whether a value is a list. The return type of `Array.isArray` does not cover read-only arrays. */
export const isList = (value: Value): value is readonly Value[] => Array.isArray(value)

export const isMap = (value: Value): value is ReadonlyMap<string, Value> => value instanceof Map

/** Whether a value is true in a condition: not nil, false, zero or empty. */
export function isTrue(value: Value): boolean {
  if (value instanceof GoFloat) return value.value !== 0
  if (isList(value)) return value.length > 0
  if (isMap(value)) return value.size > 0
  return value instanceof GoStruct || Boolean(value)
}

/** The name of a value's Go type. */
export function typeName(value: Value): string {
  if (value === null) return '<nil>'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return 'int'
  if (value instanceof GoFloat) return 'float64'
  if (value instanceof GoStruct) return value.type
  return isList(value) ? '[]interface {}' : 'map[string]interface {}'
}

/** The keys of a map in byte order. */
export const sortedKeys = (map: ReadonlyMap<string, Value>): string[] =>
  [...map.keys()]
    .map((key) => [Buffer.from(key), key] as const)
    .sort(([one], [other]) => Buffer.compare(one, other))
    .map(([, key]) => key)

/** The maximum nesting depth of a printed value. */
export const deepest = 100

/** Returns the text of a value; `<nil>` for nil. Throws a {@link TemplateError} when the value is nested too deeply. */
export function printed(value: Value, depth = 0): string {
  if (depth > deepest) throw new TemplateError('a value is nested too deep to be printed')
  if (value === null) return '<nil>'
  if (value instanceof GoFloat) return printedFloat(value.value)
  if (isList(value)) return `[${value.map((entry) => printed(entry, depth + 1)).join(' ')}]`
  if (isMap(value))
    return `map[${sortedKeys(value)
      .map((key) => `${key}:${printed(value.get(key) ?? null, depth + 1)}`)
      .join(' ')}]`
  if (value instanceof GoStruct) return `{${[...value.fields.values()].map((field) => printed(field, depth + 1)).join(' ')}}`
  return String(value)
}

/** Formats a float in the shortest notation, with an exponent below 1e-4 and from 1e6 on. */
export function printedFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return String(value)
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** Converts a JSON value. Numbers that are not integers become floats. */
export function fromJson(json: unknown): Value {
  if (json === null || json === undefined) return null
  if (typeof json === 'number') return Number.isSafeInteger(json) ? json : new GoFloat(json)
  if (typeof json === 'string' || typeof json === 'boolean') return json
  if (Array.isArray(json)) return json.map(fromJson)
  return new Map(Object.entries(json as object).map(([key, value]) => [key, fromJson(value)]))
}

/** Encodes a value as Go's `encoding/json` does: keys sorted; `<`, `>`, `&` and line separators escaped. */
export function toJson(value: Value, depth = 0): string {
  if (depth > deepest) throw new TemplateError('a value is nested too deep for JSON')
  if (value instanceof GoFloat) return JSON.stringify(value.value)
  if (isList(value)) return `[${value.map((entry) => toJson(entry, depth + 1)).join(',')}]`
  if (isMap(value))
    return `{${sortedKeys(value)
      .map((key) => `${jsonText(key)}:${toJson(value.get(key) ?? null, depth + 1)}`)
      .join(',')}}`
  if (value instanceof GoStruct) return `{${[...value.fields].map(([key, field]) => `${jsonText(key)}:${toJson(field, depth + 1)}`).join(',')}}`
  return typeof value === 'string' ? jsonText(value) : JSON.stringify(value)
}

const jsonText = (text: string): string =>
  JSON.stringify(text).replaceAll(/[<>&\u2028\u2029]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
