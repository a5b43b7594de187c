/** How functions read values of other types: numbers of texts, texts of values. */
import type { Budget } from '../budget.ts'
import { printed } from '../printed.ts'
import { bigOf, fail, GoFloat, GoInt, GoStruct, GoTime, isInt, isList, isMap, numberOf, typeName, type Value } from '../values.ts'

/** The largest integer of Go's `int64`. */
const [smallest, largest] = [-(2n ** 63n), 2n ** 63n - 1n]

/** Parses an integer with the prefixes of Go (`0x`, `0o`, `0b`, `0`), or of one base. Undefined when it is none, or too large. */
export function parsedInt(text: string, base: 0 | 8 | 10 = 0): bigint | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  if (rest.length > 90) return undefined
  const value = unsigned(rest, base)
  if (value === undefined) return undefined
  const signed = sign === '-' ? -value : value
  return signed < smallest || signed > largest ? undefined : signed
}

function unsigned(text: string, base: 0 | 8 | 10): bigint | undefined {
  if (base === 8) return /^[0-7]+$/.test(text) ? BigInt(`0o${text}`) : undefined
  if (base === 10) return /^[0-9]+$/.test(text) ? BigInt(text) : undefined
  const bare = /^(0[xX](_?[\da-fA-F])+|0[bB](_?[01])+|0[oO](_?[0-7])+|0(_?[0-7])*|[1-9](_?\d)*)$/.test(text) ? text.replaceAll('_', '') : undefined
  if (bare === undefined) return undefined
  return BigInt(/^0\d/.test(bare) ? `0o${bare.slice(1)}` : bare)
}

/** Removes the zeros behind the point of a whole number: `10.00`. */
const withoutZeros = (text: string): string => text.replace(/\.0+$/, '')

/** Converts to Go's `int64`; 0 for what is no number. */
export function toInt64(value: Value): bigint {
  if (isInt(value)) return bigOf(value)
  if (value instanceof GoFloat) return ofFloat(value.value)
  if (typeof value === 'string') return parsedInt(withoutZeros(value)) ?? 0n
  return value === true ? 1n : 0n
}

/** Truncates a float. Those that are too large become the smallest integer, as on amd64. */
function ofFloat(value: number): bigint {
  if (!Number.isFinite(value) || Math.abs(value) >= 2 ** 63) return smallest
  return BigInt(Math.trunc(value))
}

/** Converts to a float; 0 for what is no number. */
export function toFloat(value: Value): number {
  if (isInt(value)) return numberOf(value)
  if (value instanceof GoFloat) return value.value
  if (typeof value === 'string') return parsedFloat(value) ?? 0
  return value === true ? 1 : 0
}

/** Parses a float of Go. Undefined when it is none, or too large. */
export function parsedFloat(text: string): number | undefined {
  if (/^[+-]?(inf|infinity)$/i.test(text)) return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  if (/^nan$/i.test(text)) return Number.NaN
  if (text.length > 1000 || !/^[+-]?(\d(_?\d)*\.?(\d(_?\d)*)?|\.\d(_?\d)*)([eE][+-]?\d(_?\d)*)?$/.test(text)) return undefined
  const value = Number(text.replaceAll('_', ''))
  return Number.isFinite(value) ? value : undefined
}

/** The text of a value (`toString`). */
export const textOfValue = (value: Value, budget: Budget): string => (typeof value === 'string' ? value : printed(value, budget))

/** Whether a value is the empty one of its type. */
export function isEmpty(value: Value): boolean {
  if (value === null) return true
  if (value instanceof GoFloat) return value.value === 0
  if (value instanceof GoInt) return value.value === 0n
  if (isList(value)) return value.length === 0
  if (isMap(value)) return value.size === 0
  return value instanceof GoStruct || value instanceof GoTime ? false : !value
}

/** Whether two values are equal in type and content (Go's `reflect.DeepEqual`). */
export function isDeepEqual(one: Value, other: Value, budget: Budget, depth = 0): boolean {
  budget.deep(depth)
  budget.spend(typeof one === 'string' ? one.length + 5 : 5)
  if (typeName(one) !== typeName(other)) return false
  if (one instanceof GoFloat) return one.value === (other as GoFloat).value
  if (isInt(one)) return bigOf(one) === bigOf(other as GoInt)
  if (one instanceof GoTime) return one.nanos === (other as GoTime).nanos
  if (one instanceof GoStruct) return isDeepEqual(one.fields, (other as GoStruct).fields, budget, depth + 1)
  if (isList(one)) {
    const items = other as readonly Value[]
    return one.length === items.length && one.every((item, at) => isDeepEqual(item, items[at] ?? null, budget, depth + 1))
  }
  if (isMap(one)) {
    const entries = other as ReadonlyMap<string, Value>
    if (one.size !== entries.size) return false
    return [...one].every(([key, item]) => entries.has(key) && isDeepEqual(item, entries.get(key) ?? null, budget, depth + 1))
  }
  return one === other
}

/** Returns the list. Throws a TemplateError that names what was asked for. */
export function listFor(what: string, value: Value): readonly Value[] {
  return isList(value) ? value : fail(`Cannot ${what} type ${value === null ? 'nil' : typeName(value)}`)
}
