/** Values of flags and environment variables: types, ranges, parsing. */
import { parseDuration } from './duration.ts'

/** The longest duration in Go: 2^63-1 ns. */
export const longest = '2562047h47m16.854775807s'

/** The type and range of a numeric value. Ranges include both ends; durations are in Go's notation. */
export type ValueSpec =
  | { readonly type: 'integer' | 'number'; readonly range: readonly [least: number, most: number] }
  | { readonly type: 'duration'; readonly range: readonly [least: string, most: string] }

/** An environment variable: its type, its default in its own notation, and its meaning. */
export type Variable = {
  readonly meaning: string
  /** The value may contain keys: it is not shown. */
  readonly isSecret?: true
} /** `isEmptyGiven`: a value that is empty counts, and not the default in its place. */ & (
  | { readonly type: 'string'; readonly default: string; readonly isEmptyGiven?: true }
  | { readonly type: 'boolean'; readonly default: boolean }
  /** A boolean whose default depends on other settings. */
  | { readonly type: 'automatic'; readonly default: 'auto' }
  | (Extract<ValueSpec, { readonly type: 'integer' | 'number' }> & { readonly default: number })
  | (Extract<ValueSpec, { readonly type: 'duration' }> & { readonly default: string })
)

/** A variable, and why it has no effect if it has none. */
export type DeclaredVariable = Variable & { readonly without?: string }

interface ValuesByType {
  readonly string: string
  readonly boolean: boolean
  readonly automatic: boolean | 'auto'
  readonly integer: number
  readonly number: number
  readonly duration: number
}
type ValueOf<V extends Variable> = ValuesByType[V['type']]

/** The values of a table of variables; durations in milliseconds. Plain data. */
export type ValuesOf<Table extends Readonly<Record<string, Variable>>> = { readonly [N in keyof Table]: ValueOf<Table[N]> }

/** The parsed value, or a description of the expected values. */
export type ReadValue<T> = { readonly value: T } | { readonly expected: string }

/** Returns the default of a variable; a duration in milliseconds. */
export function defaultOf(variable: Variable): string | boolean | number {
  return variable.type === 'duration' ? (parseDuration(variable.default) as number) : variable.default
}

/** Parses the value of a variable; a duration in milliseconds. */
export function readVariable(variable: Variable, given: string): ReadValue<string | boolean | number> {
  if (variable.type === 'string') return { value: given }
  if (variable.type !== 'boolean' && variable.type !== 'automatic') return readValue(variable, given)
  if (variable.type === 'automatic' && /^auto$/i.test(given)) return { value: 'auto' }
  if (/^(1|t|true)$/i.test(given)) return { value: true }
  if (/^(0|f|false)$/i.test(given)) return { value: false }
  return { expected: variable.type === 'automatic' ? 'true, false or auto' : 'true or false' }
}

/** Parses a number or a duration (in milliseconds) and checks its range. */
export function readValue(spec: ValueSpec, given: string): ReadValue<number> {
  const [least, most] = spec.range
  const names = { integer: 'a whole number', number: 'a number', duration: 'a duration such as 1m30s,' } as const
  const limit = (end: string | number) => (typeof end === 'number' ? end : (parseDuration(end) as number))
  const value = spec.type === 'duration' ? parseDuration(given) : readNumber(spec.type, given.trim())
  if (value === undefined || value < limit(least) || value > limit(most)) return { expected: `${names[spec.type]} from ${least} to ${most}` }
  return { value }
}

function readNumber(type: 'integer' | 'number', given: string): number | undefined {
  const form = type === 'integer' ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
  return form.test(given) ? Number(given) : undefined
}
