/** Flags as tables, and what becomes of them: oclif flags, help, checked values (specification: overview 2.4, pilot-discovery 4.1 and 4.2). */
import { Flags } from '@oclif/core'
import { readValue, type ValueSpec } from '../config/variable.ts'

/** One flag. `notYet` says why it has no effect so far: giving it is then answered with a notice at start, and its value cannot be read. */
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
/** Values of a table's flags, without those that have no effect; durations in milliseconds. */
export type FlagValues<T extends FlagTable> = { readonly [N in keyof T as T[N] extends { notYet: string } ? never : N]: ValueOf<T[N]> }

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

/** Part of a command line: a flag with its value as one argument, or anything else. */
interface Piece {
  readonly flag?: string
  readonly list?: boolean
  /** Undefined for a switch that is turned off. */
  readonly argument: string | undefined
}

/**
 * A command line as the command-line library understands it: the command first, switches without `=true`, and of a flag that is given twice
 * the last one; flags with lists keep all. Arguments of other commands (help, autocomplete) stay as they are. Throws an Error for a switch
 * that is neither true nor false.
 */
export function normalizeArguments(given: readonly string[], commands: readonly string[], tables: readonly FlagTable[]): string[] {
  const end = given.indexOf('--')
  const pieces = split(end < 0 ? given : given.slice(0, end), flagWords(tables))
  const at = pieces.findIndex((piece) => piece.flag === undefined && !piece.argument?.startsWith('-'))
  const command = pieces[at]?.argument
  if (command === undefined || !commands.includes(command)) return [...given]
  const last = new Map(pieces.map((piece, index) => [piece.flag, index]))
  const kept = pieces.filter((piece, index) => index !== at && (piece.flag === undefined || piece.list || last.get(piece.flag) === index))
  return [command, ...kept.flatMap(({ argument }) => (argument === undefined ? [] : [argument])), ...(end < 0 ? [] : given.slice(end))]
}

/** Flags by the words that stand for them: `--name`, `-n`. */
function flagWords(tables: readonly FlagTable[]): ReadonlyMap<string, { readonly name: string; readonly spec: FlagSpec }> {
  const words = new Map<string, { name: string; spec: FlagSpec }>()
  for (const table of tables)
    for (const [name, spec] of Object.entries(table)) {
      words.set(`--${name}`, { name, spec })
      if (spec.char) words.set(`-${spec.char}`, { name, spec })
    }
  return words
}

function split(given: readonly string[], words: ReturnType<typeof flagWords>): Piece[] {
  const pieces: Piece[] = []
  for (let index = 0; index < given.length; index++) {
    const argument = given[index] as string
    const { word, value } = wordOf(argument, words)
    const flag = words.get(word)
    if (!flag) pieces.push({ argument })
    else if (flag.spec.type === 'switch') pieces.push({ flag: flag.name, argument: isOn(`--${flag.name}`, value) ? `--${flag.name}` : undefined })
    else {
      const next = given[index + 1]
      const taken = value ?? (next === undefined || words.has(next) ? undefined : next)
      if (value === undefined && taken !== undefined) index++
      const list = flag.spec.type === 'slice' || flag.spec.type === 'array'
      pieces.push({ flag: flag.name, list, argument: taken === undefined ? argument : `--${flag.name}=${taken}` })
    }
  }
  return pieces
}

/** The flag word of an argument and the value in it: `--name=value`, `-n=value`, `-nvalue`. */
function wordOf(argument: string, words: ReturnType<typeof flagWords>): { word: string; value: string | undefined } {
  const equals = argument.indexOf('=')
  if (equals > 0) return { word: argument.slice(0, equals), value: argument.slice(equals + 1) }
  const short = argument.slice(0, 2)
  if (/^-[^-]./.test(argument) && words.has(short) && words.get(short)?.spec.type !== 'switch') return { word: short, value: argument.slice(2) }
  return { word: argument, value: undefined }
}

function isOn(flag: string, value: string | undefined): boolean {
  if (value === undefined || /^(1|t|true)$/i.test(value)) return true
  if (/^(0|f|false)$/i.test(value)) return false
  throw new Error(`invalid argument ${JSON.stringify(value)} for "${flag}": expected true or false`)
}
