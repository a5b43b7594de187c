/** Command lines of commands whose flags are tables: read without the command-line library, which costs more time than most commands take. */
import type { FlagSpec, FlagTable } from './flag-table.ts'

/** A command: what its help says, and what it does. */
export interface CommandSpec {
  readonly summary: string
  readonly description?: string
  /** Command lines without the name of the binary and of the command. */
  readonly examples: readonly string[]
  readonly args: readonly { readonly name: string; readonly about: string; readonly required: boolean }[]
  /** Its flags, by the heading under which help lists them. */
  readonly flags: readonly { readonly heading: string; readonly table: FlagTable }[]
  run(line: CommandLine): Promise<void>
}

/** What was given: flags as text, `true` for a switch, lists entry by entry; and the arguments. */
export interface CommandLine {
  readonly flags: Readonly<Record<string, string | boolean | readonly string[]>>
  readonly args: readonly string[]
}

type Commands = Readonly<Record<string, CommandSpec>>

/**
 * Finds the command and reads its line. Of a flag that is given twice the last one counts; lists add up. Undefined when help is asked for
 * or when the command is not one of these. Throws an Error that names what is unknown, missing or too much.
 */
export function readCommandLine(given: readonly string[], commands: Commands): { command: CommandSpec; line: CommandLine } | undefined {
  const end = given.includes('--') ? given.indexOf('--') : given.length
  const { flags, rest } = splitFlags(given.slice(0, end), flagWords(Object.values(commands)))
  const words = rest.filter((argument) => !argument.startsWith('-'))
  // A command of two words stands before one of the first alone.
  const name = [words.slice(0, 2).join(' '), words[0] ?? ''].find((candidate) => Object.hasOwn(commands, candidate))
  const command = name === undefined ? undefined : commands[name]
  if (!command || rest.includes('--help')) return undefined
  const own = new Set(command.flags.flatMap(({ table }) => Object.keys(table)))
  const unknown = [...rest.filter((argument) => /^-./.test(argument)), ...flags.filter(({ name }) => !own.has(name)).map(({ word }) => word)]
  if (unknown.length > 0) throw new Error(`Nonexistent flag${unknown.length > 1 ? 's' : ''}: ${unknown.join(', ')}`)
  for (const word of (name as string).split(' ')) rest.splice(rest.indexOf(word), 1)
  const args = [...rest, ...given.slice(end + 1)]
  const missing = command.args.filter(({ required }, index) => required && index >= args.length)
  if (missing.length > 0) throw new Error(`missing argument for "${name}": ${missing.map((arg) => arg.name).join(', ')}`)
  const extra = args[command.args.length]
  if (extra !== undefined) throw new Error(`unexpected argument ${JSON.stringify(extra)} for "${name}"`)
  return { command, line: { flags: gather(flags), args } }
}

/** A flag that was given, by its name and by the word that stood for it. */
interface Given {
  readonly name: string
  readonly word: string
  readonly value: string | boolean | readonly string[]
}

/** Flags by the words that stand for them: `--name`, `-n`. */
function flagWords(commands: readonly CommandSpec[]): ReadonlyMap<string, { readonly name: string; readonly spec: FlagSpec }> {
  const words = new Map<string, { name: string; spec: FlagSpec }>()
  for (const { table } of commands.flatMap((command) => command.flags))
    for (const [name, spec] of Object.entries(table)) {
      words.set(`--${name}`, { name, spec })
      if (spec.char) words.set(`-${spec.char}`, { name, spec })
    }
  return words
}

/** Known flags with their values, in order, and everything else. */
function splitFlags(given: readonly string[], words: ReturnType<typeof flagWords>): { flags: Given[]; rest: string[] } {
  const flags: Given[] = []
  const rest: string[] = []
  for (let index = 0; index < given.length; index++) {
    const argument = given[index] as string
    const { word, value } = wordOf(argument, words)
    const flag = words.get(word)
    if (!flag) {
      rest.push(argument)
      continue
    }
    const { name, spec } = flag
    if (spec.type === 'switch') {
      flags.push({ name, word, value: isOn(`--${name}`, value) })
      continue
    }
    const next = given[index + 1]
    if (value === undefined && (next === undefined || words.has(next))) throw new Error(`Flag --${name} expects a value`)
    if (value === undefined) index++
    const text = value ?? (next as string)
    const list = spec.type === 'slice' ? text.split(',') : [text]
    flags.push({ name, word, value: spec.type === 'slice' || spec.type === 'array' ? list : text })
  }
  return { flags, rest }
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

function gather(flags: readonly Given[]): CommandLine['flags'] {
  const values: Record<string, Given['value']> = {}
  for (const { name, value } of flags) {
    const before = values[name]
    values[name] = Array.isArray(value) && Array.isArray(before) ? [...before, ...value] : value
  }
  return values
}
