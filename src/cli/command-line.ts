/** Parses command lines by flag tables, without the command-line library, whose import takes longer than most commands. */
import type { FlagSpec, FlagTable } from './flag-table.ts'

/** A command: its help texts, arguments and flags, and its implementation. */
export interface CommandSpec {
  readonly summary: string
  readonly description?: string
  /** Example command lines, without the names of the binary and the command. */
  readonly examples: readonly string[]
  readonly args: readonly { readonly name: string; readonly about: string; readonly required: boolean }[]
  /** The flags in groups; `heading` is the group's heading in help. */
  readonly flags: readonly { readonly heading: string; readonly table: FlagTable }[]
  /** Whether unknown flags and extra arguments are collected in {@link CommandLine.ignored} instead of causing an error. */
  readonly ignoresUnknown?: true
  run(line: CommandLine): Promise<void>
}

/** A parsed command line: flags as text, `true` or `false` for switches, lists by entry; and the arguments. */
export interface CommandLine {
  readonly flags: Readonly<Record<string, string | boolean | readonly string[]>>
  readonly args: readonly string[]
  /** The unknown flags and extra arguments as typed. Present only when the command ignores them. */
  readonly ignored?: readonly string[]
}

type Commands = Readonly<Record<string, CommandSpec>>

/**
 * Finds the command and parses its line. The last occurrence of a repeated flag counts; lists are concatenated. Returns undefined when help
 * is requested or the command is unknown. Throws an Error that names what is unknown, missing or superfluous. An unknown flag that is
 * ignored takes the next argument as its value, unless that begins with a dash or the flag contains an equals sign.
 */
export function readCommandLine(given: readonly string[], commands: Commands): { command: CommandSpec; line: CommandLine } | undefined {
  const end = given.includes('--') ? given.indexOf('--') : given.length
  const before = given.slice(0, end)
  const all = Object.values(commands)
  const found = findCommand(looseOf(before, flagWords(all)), commands)
  if (!found) return undefined
  const { name, command, at } = found
  const isLenient = command.ignoresUnknown === true
  // Two commands may use the same short flag; the command's own takes precedence. For a command that ignores unknown flags, only its own
  // flags are known.
  const words = flagWords(isLenient ? [command] : [...all, command])
  const { flags, rest, unknown } = splitFlags(
    before.filter((_, index) => !at.includes(index)),
    words,
    isLenient,
  )
  const own = new Set(command.flags.flatMap(({ table }) => Object.keys(table)))
  const wrong = [
    ...rest.filter(({ text }) => /^-./.test(text)).map(({ text }) => text),
    ...flags.filter((flag) => !own.has(flag.name)).map(({ word }) => word),
  ]
  if (wrong.length > 0) throw new Error(`Nonexistent flag${wrong.length > 1 ? 's' : ''}: ${wrong.join(', ')}`)
  const args = [...rest.map(({ text }) => text), ...given.slice(end + 1)]
  const missing = command.args.filter(({ required }, index) => required && index >= args.length)
  if (missing.length > 0) throw new Error(`missing argument for "${name}": ${missing.map((arg) => arg.name).join(', ')}`)
  const extra = args.splice(command.args.length)
  if (isLenient) return { command, line: { flags: gather(flags), args, ignored: [...unknown, ...extra] } }
  if (extra.length > 0) throw new Error(`unexpected argument ${JSON.stringify(extra[0])} for "${name}"`)
  return { command, line: { flags: gather(flags), args } }
}

/** An argument that is not a known flag, and its index. */
interface Loose {
  readonly text: string
  readonly at: number
}

/** Returns the arguments that are neither flags of any command nor values of flags. */
function looseOf(given: readonly string[], words: ReturnType<typeof flagWords>): Loose[] {
  const loose: Loose[] = []
  for (let at = 0; at < given.length; at++) {
    const text = given[at] as string
    const { word, value } = wordOf(text, words)
    const flag = words.get(word)
    if (!flag) loose.push({ text, at })
    else if (flag.spec.type !== 'switch' && value === undefined) at++
  }
  return loose
}

/** Returns the command that the words name, and the indices of its words. Undefined when help is requested or the command is unknown. */
function findCommand(rest: readonly Loose[], commands: Commands): { name: string; command: CommandSpec; at: readonly number[] } | undefined {
  const words = rest.filter(({ text }) => !text.startsWith('-'))
  // A command of two words takes precedence over a command of one.
  const named = [words.slice(0, 2), words.slice(0, 1)].find((some) => Object.hasOwn(commands, nameOf(some)))
  const command = named && commands[nameOf(named)]
  if (!command || rest.some(({ text }) => text === '--help' || text === '-h')) return undefined
  return { name: nameOf(named), command, at: named.map(({ at }) => at) }
}

const nameOf = (words: readonly Loose[]) => words.map(({ text }) => text).join(' ')

/** A flag with its value: its name, and the word that it was given as. */
interface Given {
  readonly name: string
  readonly word: string
  readonly value: string | boolean | readonly string[]
}

/** Maps the words of all flags to the flags: `--name`, `-n`. */
function flagWords(commands: readonly CommandSpec[]): ReadonlyMap<string, { readonly name: string; readonly spec: FlagSpec }> {
  const words = new Map<string, { name: string; spec: FlagSpec }>()
  for (const { table } of commands.flatMap((command) => command.flags))
    for (const [name, spec] of Object.entries(table)) {
      words.set(`--${name}`, { name, spec })
      if (spec.char) words.set(`-${spec.char}`, { name, spec })
    }
  return words
}

/**
 * Returns the known flags with their values, in order, and the other arguments. With `unknownApart`, unknown flags and their presumed
 * values are returned in `unknown`.
 */
function splitFlags(
  given: readonly string[],
  words: ReturnType<typeof flagWords>,
  unknownApart: boolean,
): { flags: Given[]; rest: Loose[]; unknown: string[] } {
  const flags: Given[] = []
  const rest: Loose[] = []
  const unknown: string[] = []
  for (let index = 0; index < given.length; index++) {
    const argument = given[index] as string
    const { word, value } = wordOf(argument, words)
    const flag = words.get(word)
    const next = given[index + 1]
    if (!flag && unknownApart && /^-./.test(argument)) {
      const takesNext = value === undefined && next !== undefined && !next.startsWith('-')
      if (takesNext) index++
      unknown.push(takesNext ? `${argument} ${next}` : argument)
      continue
    }
    if (!flag) {
      rest.push({ text: argument, at: index })
      continue
    }
    const { name, spec } = flag
    if (spec.type === 'switch') {
      flags.push({ name, word, value: isOn(`--${name}`, value) })
      continue
    }
    if (value === undefined && (next === undefined || words.has(next))) throw new Error(`Flag --${name} expects a value`)
    if (value === undefined) index++
    const text = value ?? (next as string)
    const list = spec.type === 'slice' ? text.split(',') : [text]
    flags.push({ name, word, value: spec.type === 'slice' || spec.type === 'array' ? list : text })
  }
  return { flags, rest, unknown }
}

/** Splits an argument into the flag's word and an attached value: `--name=value`, `-n=value`, `-nvalue`. */
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
