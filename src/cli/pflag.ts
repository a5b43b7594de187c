/**
 * Translates command lines as users of Go programs write them (pflag) to those that the command-line library parses: flags before and
 * between the words of the command, `-x5`, `-x=5`, joined switches (`-fn`), `--switch=false`, repeated flags of which the last counts.
 */

/** What the translation reads of a flag. The manifest has it too, so that no command is loaded for it. */
interface KnownFlag {
  readonly type: 'boolean' | 'option'
  readonly char?: string
  readonly multiple?: boolean
}

export type KnownFlags = Readonly<Record<string, KnownFlag>>

/** A command by which the library finds it: its words, joined by colons. */
export interface KnownCommand {
  readonly id: string
  readonly flags: KnownFlags
}

/** A part of a command line: a flag with its value, if it has one, or else any other argument. */
type Part =
  | { readonly at: number; readonly word: string; readonly flag: KnownFlag & { readonly name: string }; readonly value: string | undefined }
  | { readonly at: number; readonly text: string; readonly flag?: undefined }

/**
 * Returns the id of the command in a command line, and the line without the words of the command. Flags of all commands are known, so that
 * they may precede it. Undefined when help is requested or the command is unknown.
 */
export function findCommand(given: readonly string[], commands: readonly KnownCommand[]): { id: string; argv: string[] } | undefined {
  const { before } = split(given)
  const loose = partsOf(before, wordsOf(Object.assign({}, ...commands.map(({ flags }) => flags)))).flatMap((part) => (part.flag ? [] : [part]))
  if (loose.some(({ text }) => text === '--help' || text === '-h')) return undefined
  const words = loose.filter(({ text }) => !text.startsWith('-'))
  // A command of two words takes precedence over a command of one.
  const ids = new Set(commands.map(({ id }) => id))
  const named = [words.slice(0, 2), words.slice(0, 1)].find((some) => ids.has(some.map(({ text }) => text).join(':')))
  if (!named) return undefined
  const taken = new Set(named.map(({ at }) => at))
  return { id: named.map(({ text }) => text).join(':'), argv: given.filter((_, at) => !taken.has(at)) }
}

/** A translated command line. */
interface Translated {
  /** Flags as `--name value`, switches too, with `true` or `false`; of repeated flags the last, of lists all; then the other arguments. */
  readonly argv: string[]
  /** Unknown flags as typed, with their presumed values. Empty unless they are to be ignored. */
  readonly ignored: string[]
}

/**
 * Translates the line of a command with these flags. Unknown flags are left to the library, which rejects them, unless `ignoresUnknown`: then
 * each takes the next argument as its value, unless that begins with a dash or the flag contains an equals sign. Throws an Error that names a
 * flag without its value.
 */
export function translateLine(given: readonly string[], flags: KnownFlags, ignoresUnknown: boolean): Translated {
  const { before, after } = split(given)
  const words = wordsOf(flags)
  const values = new Map<string, string[]>()
  const others: string[] = []
  const ignored: string[] = []
  const parts = partsOf(before, words)
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as Part
    if (part.flag) {
      const { name, multiple, type } = part.flag
      const value = part.value ?? (type === 'boolean' ? 'true' : undefined)
      if (value === undefined || words.has(value)) throw new Error(`Flag --${name} expects a value`)
      values.set(name, multiple ? [...(values.get(name) ?? []), value] : [value])
    } else if (ignoresUnknown && /^-./.test(part.text)) {
      const next = parts[index + 1]
      const takesNext = !part.text.includes('=') && next !== undefined && next.flag === undefined && !next.text.startsWith('-')
      ignored.push(takesNext ? `${part.text} ${next.text}` : part.text)
      if (takesNext) index++
    } else others.push(part.text)
  }
  const flagged = [...values].flatMap(([name, all]) => all.flatMap((value) => [`--${name}`, value]))
  return { argv: [...flagged, ...others, ...(after.length > 0 ? ['--', ...after] : [])], ignored }
}

/** Splits a command line at the first `--`. */
function split(given: readonly string[]): { before: readonly string[]; after: readonly string[] } {
  const end = given.includes('--') ? given.indexOf('--') : given.length
  return { before: given.slice(0, end), after: given.slice(end + 1) }
}

type Words = ReadonlyMap<string, KnownFlag & { readonly name: string }>

/** Maps the words of flags to the flags: `--name`, `-n`. */
export const wordsOf = (flags: KnownFlags): Words =>
  new Map(
    Object.entries(flags).flatMap(([name, flag]) => [
      [`--${name}`, { ...flag, name }] as const,
      ...(flag.char ? [[`-${flag.char}`, { ...flag, name }] as const] : []),
    ]),
  )

/** Returns the parts of a command line, in order. An option without an attached value takes the next argument, whatever it is. */
export function partsOf(given: readonly string[], words: Words): Part[] {
  const parts: Part[] = []
  for (let at = 0; at < given.length; at++) {
    const text = given[at] as string
    const start = at
    const flags = text.startsWith('--') ? longFlag(text, words) : shortFlags(text, words)
    if (!flags) parts.push({ at, text })
    for (const { word, value } of flags ?? []) {
      const flag = words.get(word) as KnownFlag & { name: string }
      const takesNext = flag.type === 'option' && value === undefined
      parts.push({ at: start, word, flag, value: takesNext ? given[++at] : value })
    }
  }
  return parts
}

type Attached = { readonly word: string; readonly value: string | undefined }

/** Returns the flag of `--name` or `--name=value`. Undefined when it is unknown. */
function longFlag(text: string, words: Words): Attached[] | undefined {
  const equals = text.indexOf('=')
  const word = equals < 0 ? text : text.slice(0, equals)
  return words.has(word) ? [{ word, value: equals < 0 ? undefined : text.slice(equals + 1) }] : undefined
}

/** Returns the flags of `-n`, `-nvalue`, `-n=value`, or of switches before these, `-fnvalue`. Undefined when one of them is unknown. */
function shortFlags(text: string, words: Words): Attached[] | undefined {
  const flags: Attached[] = []
  if (!/^-./.test(text)) return undefined
  for (let index = 1; index < text.length; index++) {
    const word = `-${text[index]}`
    const rest = text.slice(index + 1)
    const flag = words.get(word)
    if (!flag) return undefined
    if (flag.type === 'option' || rest.startsWith('=')) return [...flags, { word, value: rest === '' ? undefined : rest.replace(/^=/, '') }]
    flags.push({ word, value: undefined })
  }
  return flags
}
