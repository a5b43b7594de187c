/** Flags as tables, and what becomes of them: oclif flags, help, checked values (specification: overview 2.4, pilot-discovery 4.1 and 4.2). */
import { Flags } from '@oclif/core'
import { parseDuration } from '../config/duration.ts'

/** One flag. `notYet` says why it has no effect so far; giving it is then answered with a notice at start. */
export interface FlagSpec {
  readonly type: 'string' | 'switch' | 'int' | 'uint16' | 'float32' | 'duration' | 'slice' | 'array'
  readonly char?: string
  readonly default: string | number | boolean | readonly string[]
  readonly about: string
  readonly notYet?: string
}

export type FlagTable = Readonly<Record<string, FlagSpec>>

type ValueOf<S extends FlagSpec> = S['type'] extends 'switch'
  ? boolean
  : S['type'] extends 'int' | 'uint16' | 'float32' | 'duration'
    ? number
    : S['type'] extends 'slice' | 'array'
      ? string[]
      : string
/** Values of a table's flags; durations in milliseconds. */
export type FlagValues<T extends FlagTable> = { readonly [N in keyof T]: ValueOf<T[N]> }

/** The flags of a table in the form that the command-line library takes. */
export function oclifFlags(table: FlagTable, group: string): Record<string, ReturnType<typeof Flags.string>> {
  const flags: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) {
    const common = { description: spec.about, ...(group === '' ? {} : { helpGroup: group }), ...(spec.char ? { char: spec.char as 'a' } : {}) }
    const shown = Array.isArray(spec.default) ? spec.default.join(',') : String(spec.default)
    if (spec.type === 'switch') flags[name] = Flags.boolean({ ...common })
    else if (spec.type === 'slice')
      flags[name] = Flags.string({
        ...common,
        multiple: true,
        multipleNonGreedy: true,
        delimiter: ',',
        default: spec.default as string[],
        helpValue: 'a,b',
      })
    else if (spec.type === 'array')
      flags[name] = Flags.string({ ...common, multiple: true, multipleNonGreedy: true, default: spec.default as string[], helpValue: 'path' })
    else flags[name] = Flags.string({ ...common, helpValue: spec.type, ...(shown === '' ? {} : { default: shown }) })
  }
  return flags as Record<string, ReturnType<typeof Flags.string>>
}

/** Reads what the command line gave. Throws an Error that names the flag and what is wrong with its value. */
export function readFlags<T extends FlagTable>(table: T, given: Readonly<Record<string, unknown>>): FlagValues<T> {
  const values: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) values[name] = readFlag(name, spec, given[name] ?? spec.default)
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
      if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(Number(text))) throw wrong('a whole number')
      return Number(text)
    case 'uint16':
      if (!/^\d+$/.test(text) || Number(text) > 65_535) throw wrong('a whole number from 0 to 65535')
      return Number(text)
    case 'float32':
      if (text.trim() === '' || !Number.isFinite(Number(text))) throw wrong('a number')
      return Number(text)
    case 'duration': {
      const ms = parseDuration(text)
      if (ms === undefined) throw wrong('a duration such as 1m30s')
      return ms
    }
    case 'string':
      return value === undefined ? '' : text
  }
}

/** `--name=false` and `--name=true` of switches as the library understands them, and root flags before the command moved behind it. */
export function normalizeArguments(given: readonly string[], commands: readonly string[], tables: readonly FlagTable[]): string[] {
  const switches = new Map<string, string>()
  for (const table of tables) {
    for (const [name, spec] of Object.entries(table)) {
      if (spec.type !== 'switch') continue
      switches.set(`--${name}`, `--${name}`)
      if (spec.char) switches.set(`-${spec.char}`, `--${name}`)
    }
  }
  const normalized = given.flatMap((argument) => {
    const equals = argument.indexOf('=')
    const flag = equals < 0 ? undefined : switches.get(argument.slice(0, equals))
    if (flag === undefined) return [argument]
    const value = argument.slice(equals + 1)
    if (/^(1|t|true)$/i.test(value)) return [flag]
    if (/^(0|f|false)$/i.test(value)) return []
    throw new Error(`invalid argument ${JSON.stringify(value)} for "${flag}": expected true or false`)
  })
  const at = normalized.findIndex((argument) => commands.includes(argument))
  if (at <= 0 || !normalized[0]?.startsWith('-')) return normalized
  return [normalized[at] as string, ...normalized.slice(0, at), ...normalized.slice(at + 1)]
}
