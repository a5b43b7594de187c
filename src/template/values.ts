/** The values of templates (Go's `text/template`). */
import { isUtf8 } from 'node:buffer'

/** A fault of a template, or of its use of the data. `line` is where it is known. */
export class TemplateError extends Error {
  readonly line: number | undefined
  /** The name of the template, once it stands in the message. */
  readonly template: string | undefined

  constructor(message: string, line?: number, template?: string) {
    super(message)
    this.line = line
    this.template = template
  }
}

/** Throws a {@link TemplateError}. */
export const fail = (text: string): never => {
  throw new TemplateError(text)
}

/** Go's `float64`. */
export class GoFloat {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** An integer of another type than Go's `int`, or an `int` that a JavaScript number cannot hold exactly. Other integers are plain numbers. */
export class GoInt {
  /** `int`, `int64`, `int32`, `uint8`. */
  readonly type: string
  readonly value: bigint

  constructor(type: string, value: bigint) {
    this.type = type
    this.value = value
  }
}

/** A list of Go whose elements have a type of their own (`[]string`, `[]int`). Plain arrays are `[]interface {}`. */
export class GoList extends Array<Value> {
  /** The name of its type. */
  type = '[]string'
  /** Whether it is nil: empty, and null in JSON. */
  isNil = false

  /** Its copies are plain arrays. */
  static override get [Symbol.species]() {
    return Array
  }
}

/** Returns a list of the given Go type. */
export function listOf(type: string, items: readonly Value[]): GoList {
  const list = new GoList()
  list.type = type
  for (const item of items) list.push(item)
  return list
}

/** Returns a list of the given Go type that is nil. */
export function nilList(type: string): GoList {
  const list = listOf(type, [])
  list.isNil = true
  return list
}

/** A map of Go from strings to strings (`map[string]string`), as labels and annotations are. Plain maps are `map[string]interface {}`. */
export class GoStringMap extends Map<string, Value> {}

/** A Go message. Access to a field that it does not declare is an error. */
export class GoStruct {
  /** The name of its type. That of a pointer begins with an asterisk. */
  readonly type: string
  readonly fields: ReadonlyMap<string, Value>
  /** Its printed form, where it has one of its own. */
  readonly text: string | undefined

  constructor(type: string, fields: ReadonlyMap<string, Value>, text?: string) {
    this.type = type
    this.fields = fields
    this.text = text
  }

  /** Returns the same message with other fields. */
  withFields(fields: ReadonlyMap<string, Value>): GoStruct {
    return new GoStruct(this.type, fields, this.text)
  }
}

/** A moment (Go's `time.Time`), in nanoseconds since 1970, and the zone in which it is shown. */
export class GoTime {
  readonly nanos: bigint
  readonly zone: string

  constructor(nanos: bigint, zone: string) {
    this.nanos = nanos
    this.zone = zone
  }
}

/**
 * A value: nil, a boolean, a number, text, a list, a map or a message. Text is a JavaScript string; a byte that is not UTF-8 is a lone
 * surrogate ({@link textOf}). Maps that functions make are changed by functions (`set`).
 */
export type Value = null | boolean | number | string | GoFloat | GoInt | GoStruct | GoTime | readonly Value[] | ReadonlyMap<string, Value>

/** Whether a value is a list. The return type of `Array.isArray` does not cover read-only arrays. */
export const isList = (value: unknown): value is readonly Value[] => Array.isArray(value)

export const isMap = (value: unknown): value is ReadonlyMap<string, Value> => value instanceof Map

/** Whether a value is an integer of any type. */
export const isInt = (value: Value): value is number | GoInt => typeof value === 'number' || value instanceof GoInt

/** Returns an integer as a bigint. */
export const bigOf = (value: number | GoInt): bigint => (typeof value === 'number' ? BigInt(value) : value.value)

/** Returns an integer as a number, which is not exact beyond 2^53. */
export const numberOf = (value: number | GoInt): number => (typeof value === 'number' ? value : Number(value.value))

/** Returns Go's `int` for a bigint. */
export function goInt(value: bigint): number | GoInt {
  const wrapped = BigInt.asIntN(64, value)
  return wrapped >= BigInt(Number.MIN_SAFE_INTEGER) && wrapped <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wrapped) : new GoInt('int', wrapped)
}

/** Returns Go's `int64`, which wraps around. */
export const goInt64 = (value: bigint | number): GoInt => new GoInt('int64', BigInt.asIntN(64, BigInt(value)))

/** Whether a value is true in a condition: not nil, false, zero or empty. */
export function isTrue(value: Value): boolean {
  if (value instanceof GoFloat) return value.value !== 0
  if (value instanceof GoInt) return value.value !== 0n
  if (isList(value)) return value.length > 0
  if (isMap(value)) return value.size > 0
  return value instanceof GoStruct || value instanceof GoTime || Boolean(value)
}

/** The name of a value's Go type. */
export function typeName(value: Value): string {
  if (value === null) return '<nil>'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return 'int'
  if (value instanceof GoFloat) return 'float64'
  if (value instanceof GoInt || value instanceof GoStruct || value instanceof GoList) return value.type
  if (value instanceof GoTime) return 'time.Time'
  if (value instanceof GoStringMap) return 'map[string]string'
  return isList(value) ? '[]interface {}' : 'map[string]interface {}'
}

/** The kind of a value (Go's `reflect.Kind`). */
export function kindName(value: Value): string {
  if (value === null) return 'invalid'
  if (isList(value)) return 'slice'
  if (isMap(value)) return 'map'
  if (value instanceof GoStruct) return value.type.startsWith('*') ? 'ptr' : 'struct'
  return value instanceof GoTime ? 'struct' : typeName(value)
}

/** The keys of a map in byte order. */
export function sortedKeys(map: ReadonlyMap<string, Value>): string[] {
  const keys = [...map.keys()]
  // The order of JavaScript is that of bytes except for surrogates.
  if (keys.every(isPlain)) return keys.sort(plainOrder)
  return keys
    .map((key) => [bytesOf(key), key] as const)
    .sort(([one], [other]) => Buffer.compare(one, other))
    .map(([, key]) => key)
}

const plainOrder = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

/** Whether a text has letters of ASCII only. */
const isPlain = (text: string): boolean => !/[^\x00-\x7f]/.test(text)

/** Compares texts by their bytes. */
export const byteOrder = (one: string, other: string): number =>
  isPlain(one) && isPlain(other) ? plainOrder(one, other) : Buffer.compare(bytesOf(one), bytesOf(other))

const lowSurrogates = 0xdc00

/** Returns the bytes of a text (Go's strings are bytes). */
export function bytesOf(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text)
  const parts: Buffer[] = []
  for (const piece of text.split(/(?<![\ud800-\udbff])([\udc80-\udcff])/)) {
    const code = piece.length === 1 ? piece.charCodeAt(0) : 0
    parts.push(code >= lowSurrogates && code <= lowSurrogates + 0xff ? Buffer.of(code - lowSurrogates) : Buffer.from(piece))
  }
  return Buffer.concat(parts)
}

/** Returns the text of bytes. A byte that is not UTF-8 becomes the lone surrogate U+DC00 and the byte, so that {@link bytesOf} finds it again. */
export function textOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString()
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceAt(bytes, at)
    parts.push(length === 0 ? String.fromCharCode(lowSurrogates + (bytes[at] as number)) : bytes.toString('utf8', at, at + length))
    at += length || 1
  }
  return parts.join('')
}

/** The length of the UTF-8 sequence at a position, 0 when there is none. */
function sequenceAt(bytes: Buffer, at: number): number {
  const first = bytes[at] as number
  const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0
  return length > 0 && at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0
}

/** The text as it is written: bytes that are not UTF-8 become U+FFFD. */
export const written = (text: string): string => (text.isWellFormed() ? text : textOf(bytesOf(text)).toWellFormed())

/** The most objects and lists within each other in the data of a template. */
const deepest = 500

/** Converts a JSON value. Integers become `int`, other numbers `float64`. Throws a {@link TemplateError} when it is nested too deep. */
export const fromJson = (json: unknown): Value => ofJson(json, (number) => (Number.isSafeInteger(number) ? number : new GoFloat(number)))

/** Converts a JSON value as Go's `encoding/json` does: all numbers become `float64`. */
export const fromGoJson = (json: unknown): Value => ofJson(json, (number) => new GoFloat(number))

function ofJson(json: unknown, ofNumber: (number: number) => Value, depth = 0): Value {
  if (depth > deepest) return fail(`the data is nested deeper than ${deepest} levels`)
  if (json === null || json === undefined) return null
  if (typeof json === 'number') return ofNumber(json)
  if (typeof json === 'string') return json.toWellFormed()
  if (typeof json === 'boolean') return json
  if (Array.isArray(json)) return json.map((item) => ofJson(item, ofNumber, depth + 1))
  return new Map(Object.entries(json as object).map(([key, value]) => [key.toWellFormed(), ofJson(value, ofNumber, depth + 1)]))
}

/** Returns a copy of a value whose maps and lists are its own. */
export function copied(value: Value): Value {
  if (value instanceof GoList) return listOf(value.type, value.map(copied))
  if (isList(value)) return value.map(copied)
  // No function changes it.
  if (value instanceof GoStringMap) return value
  if (isMap(value)) return new Map([...value].map(([key, entry]) => [key, copied(entry)]))
  return value instanceof GoStruct ? value.withFields(new Map([...value.fields].map(([key, entry]) => [key, copied(entry)]))) : value
}
