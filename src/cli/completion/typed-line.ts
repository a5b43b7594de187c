/** Completes a command line that is being typed: which commands, flags, values of flags and arguments may stand where its end is. */
import { type KnownCommand, type KnownFlags, partsOf, wordsOf } from '../pflag.ts'

/** A word that may stand where one is typed, and what it is. */
export interface Candidate {
  readonly word: string
  readonly about: string
}

/** What a word that is typed may be: candidates are known, values are looked for by what they are. */
export interface Sought {
  readonly candidates: readonly Candidate[]
  /** What a value is: the placeholder of the flag in help (`file`, `http|tcp`) or the name of the argument (`proxy`). Undefined: no value is typed. */
  readonly value?: string
  /** What of the word stays before the value: `--name=` of a flag, and the values of a list before this one. */
  readonly kept: string
  /** The flags that the line has, with their values. */
  readonly given: Readonly<Record<string, string>>
}

/** What completion reads of an argument. The manifest has it too. */
interface KnownArgument {
  readonly description?: string
}

/** A command as the manifest has it. */
export interface CompletedCommand extends KnownCommand {
  readonly summary?: string
  readonly description?: string
  readonly hidden?: boolean
  readonly args: Readonly<Record<string, KnownArgument>>
  readonly flags: KnownFlags &
    Readonly<Record<string, { readonly description?: string; readonly helpValue?: string; readonly helpGroup?: string; readonly hidden?: boolean }>>
}

/** Returns what the last of some words may be, which follow the name of the program. `topics`: words of which each begins several commands. */
export function soughtIn(words: readonly string[], commands: readonly CompletedCommand[], topics: Readonly<Record<string, string>>): Sought {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const shown = commands.filter(({ hidden }) => !hidden)
  const parts = partsOf(before, wordsOf(Object.assign({}, ...shown.map(({ flags }) => flags))))
  const loose = parts.flatMap((part) => (part.flag || part.text.startsWith('-') ? [] : [part.text]))
  const command = commandOf(loose, shown)
  const given = Object.fromEntries(parts.flatMap((part) => (part.flag ? [[part.flag.name, part.value ?? '']] : [])))
  const sought = { candidates: [], kept: '', given }

  const last = parts.at(-1)
  if (last?.flag && last.flag.type === 'option' && last.value === undefined)
    return { ...sought, ...soughtValue(last.flag.name, typed, '', command, shown) }
  const [, name, written] = /^--([^=]+)=(.*)$/s.exec(typed) ?? []
  if (name !== undefined && !before.includes('--')) return { ...sought, ...soughtValue(name, written as string, `--${name}=`, command, shown) }
  if (typed.startsWith('-') && !before.includes('--')) return { ...sought, candidates: flagsOf(command, shown, given) }

  const more = loose[0] === 'help' ? loose.slice(1) : loose
  const next = wordsAfter(more, shown, topics, loose.length === 0)
  if (next.length > 0) return { ...sought, candidates: next }
  const names = Object.keys(command?.args ?? {})
  if (!command || names.length === 0) return sought
  const position = loose.length - command.id.split(':').length
  const value = names[Math.min(position, names.length - 1)] as string
  return { ...sought, value: `${command.id} ${value}` }
}

/** The command that words name, of which one of two words takes precedence over one of one. */
const commandOf = (loose: readonly string[], commands: readonly CompletedCommand[]): CompletedCommand | undefined =>
  commands.find(({ id }) => loose.length > 1 && id === loose.slice(0, 2).join(':')) ?? commands.find(({ id }) => id === loose[0])

/** The value of a flag, of a list of values the one that is typed. */
function soughtValue(name: string, written: string, kept: string, command: CompletedCommand | undefined, commands: readonly CompletedCommand[]) {
  const flag = command?.flags[name] ?? commands.find(({ flags }) => flags[name])?.flags[name]
  const others = written.slice(0, written.lastIndexOf(',') + 1)
  const value = flag?.type === 'boolean' ? 'true|false' : (flag?.helpValue ?? '')
  return { value, kept: value === 'file' ? kept : kept + others }
}

/** The flag that all commands have. */
const showsHelp: CompletedCommand['flags'][string] = { type: 'boolean', description: 'Show help' }

/** The flags of a command, those of the command itself first; without a command, those that all have. One that is given is left out, unless it may be repeated. */
function flagsOf(command: CompletedCommand | undefined, commands: readonly CompletedCommand[], given: Readonly<Record<string, string>>): Candidate[] {
  const isOfAll = ([name]: [string, unknown]) => commands.every(({ flags }) => flags[name] !== undefined)
  const flags = command ? Object.entries(command.flags) : Object.entries(commands[0]?.flags ?? {}).filter(isOfAll)
  const own = flags.filter(([, { helpGroup }]) => helpGroup === undefined)
  const ordered = [...own, ...flags.filter((entry) => !own.includes(entry)), ['help', showsHelp] as const]
  return ordered.flatMap(([name, { description = '', hidden, multiple }]) =>
    hidden || (given[name] !== undefined && !multiple) ? [] : [{ word: `--${name}`, about: description }],
  )
}

/** The words of commands and topics that follow some, and `help` where it may stand. */
function wordsAfter(
  words: readonly string[],
  commands: readonly CompletedCommand[],
  topics: Readonly<Record<string, string>>,
  mayBeHelp: boolean,
): Candidate[] {
  const found = new Map<string, string>()
  for (const { id, summary, description } of commands) {
    const own = id.split(':')
    const next = own[words.length]
    if (next === undefined || words.some((word, at) => own[at] !== word)) continue
    const isWhole = own.length === words.length + 1
    if (isWhole || !found.has(next)) found.set(next, isWhole ? (summary ?? description ?? '') : (topics[next] ?? ''))
  }
  const candidates = [...found].map(([word, about]) => ({ word, about }))
  return mayBeHelp ? [...candidates, { word: 'help', about: 'Display help for a command' }] : candidates
}

/** The candidates that begin as the last word of a line, a line each: the word, a tab, and what it is. */
export function candidateLines(candidates: readonly Candidate[], typed: string): string[] {
  const lines = candidates.flatMap(({ word, about }) => (word.startsWith(typed) ? [`${word}\t${firstLine(about)}`] : []))
  return lines.filter((line) => !/\p{Cc}/u.test(line.replace('\t', '')))
}

/** The longest description of a candidate, in characters. */
const longestAbout = 100

function firstLine(text: string): string {
  const [first = ''] = text.split('\n', 1)
  return first.length > longestAbout ? `${first.slice(0, longestAbout - 1)}…` : first
}
