/** Tables of flags, and the validation of their values (docs/operation.md, "Flags"). */
import { readValue, type ValueSpec } from '../config/variable.ts'

/**
 * One flag. `notYet` is the reason why the flag has no effect yet: its use is reported at start-up, and its value is not in {@link
 * FlagValues}.
 */
export type FlagSpec = {
  readonly char?: string
  readonly about: string
  readonly notYet?: string
} & (
  | { readonly type: 'string'; readonly default: string }
  | { readonly type: 'switch'; readonly default: false }
  | { readonly type: 'int' | 'uint16' | 'float32'; readonly default: number; readonly range: readonly [least: number, most: number] }
  | { readonly type: 'duration'; readonly default: string; readonly range: readonly [least: string, most: string] }
  | { readonly type: 'slice' | 'array'; readonly default: readonly string[] }
)

export type FlagTable = Readonly<Record<string, FlagSpec>>

type ValueOf<S extends FlagSpec> = S['type'] extends 'switch'
  ? boolean
  : S['type'] extends 'int' | 'uint16' | 'float32' | 'duration'
    ? number
    : S['type'] extends 'slice' | 'array'
      ? string[]
      : string
/** The values of a table's flags, except those without effect. Durations are in milliseconds. */
export type FlagValues<T extends FlagTable> = { readonly [N in keyof T as T[N] extends { notYet: string } ? never : N]: ValueOf<T[N]> }

/** Validates the flags of a command line. Throws an Error that names the flag and the expected value. */
export function readFlags<T extends FlagTable>(table: T, given: Readonly<Record<string, unknown>>): FlagValues<T> {
  const values: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) {
    const value = readFlag(name, spec, given[name] ?? spec.default)
    if (spec.notYet === undefined) values[name] = value
  }
  return values as FlagValues<T>
}

function readFlag(name: string, spec: FlagSpec, value: unknown): unknown {
  const text = String(value)
  const wrong = (expected: string) => new Error(`invalid argument ${JSON.stringify(text)} for "--${name}": expected ${expected}`)
  switch (spec.type) {
    case 'switch':
      return value === true
    case 'slice':
    case 'array':
      return (value as string[]).flatMap((entry) => (spec.type === 'slice' ? entry.split(',') : [entry])).filter((entry) => entry !== '')
    case 'int':
    case 'uint16':
    case 'float32':
    case 'duration': {
      const read = readValue(valueSpec(spec), text)
      if ('expected' in read) throw wrong(read.expected)
      return read.value
    }
    case 'string':
      return value === undefined ? '' : text
  }
}

function valueSpec(spec: Extract<FlagSpec, { readonly range: unknown }>): ValueSpec {
  if (spec.type === 'duration') return { type: 'duration', range: spec.range }
  return { type: spec.type === 'float32' ? 'number' : 'integer', range: spec.range }
}
