/** The base of all commands: parses a line as pflag would, and checks what all commands have in common. */
import { Command } from '@oclif/core/command'
import type { Arg, ArgInput, FlagInput, OptionFlag, ParserOutput } from '@oclif/core/interfaces'
import type { LogOptions } from '../logging/levels.ts'
import { nearest } from '../model/edit-distance.ts'
import { type FlagValues, isOn } from './flags.ts'
import { type LoggingFlags, readLogOptions } from './logging-flags.ts'
import { translateLine } from './pflag.ts'

/** A parsed command line. */
export interface Line<Flags, Args> {
  readonly flags: FlagValues<Flags>
  readonly args: Args
  /** The flags that were given, with the texts of their values. */
  readonly given: ReadonlyMap<string, string>
  /** What the logging flags say, which every command checks. */
  readonly log: LogOptions
  /** Unknown flags and extra arguments as typed. Empty unless the command ignores them. */
  readonly ignored: readonly string[]
  /** Environment variables of flags whose values cannot be read and are left out. */
  readonly warnings: readonly string[]
}

/** The values of arguments. */
type ArgValues<Args> = { readonly [Name in keyof Args]: Args[Name] extends Arg<infer Value> ? Value : never }

/** What a command declares: its flags, those of all commands of the binary, its arguments, and whether it rejects what it does not know. */
interface Declared<Flags extends FlagInput, BaseFlags extends LoggingFlags, Args extends ArgInput> {
  readonly flags?: Flags
  readonly baseFlags: BaseFlags
  readonly args?: Args
  readonly strict?: boolean
}

/** A command whose line is translated and parsed by {@link MeshCommand.line}. */
export abstract class MeshCommand extends Command {
  /** The log scopes of the binary. */
  protected abstract readonly scopes: readonly string[]

  /**
   * Parses the command line. The variable of a flag counts where the flag is not given. Rejects with an Error that names the flag or
   * argument and the reason.
   */
  protected async line<Flags extends FlagInput, BaseFlags extends LoggingFlags, Args extends ArgInput>(
    declared: Declared<Flags, BaseFlags, Args>,
    environment: NodeJS.ProcessEnv = process.env,
  ): Promise<Line<Flags & BaseFlags, ArgValues<Args>>> {
    const all = { ...declared.baseFlags, ...declared.flags } as FlagInput
    const { argv, ignored } = translateLine(this.argv, all, declared.strict === false)
    const { flags: parsable, warnings } = await parsableFlags(all, environment)
    const parsed = (await this.parse({ args: declared.args ?? {}, strict: declared.strict, flags: parsable }, argv).catch((error: unknown) => {
      throw withNearFlag(error, Object.keys(all))
    })) as ParserOutput
    const given = new Map<string, string>()
    for (const token of parsed.raw) if (token.type === 'flag') given.set(token.flag, [given.get(token.flag) ?? [], token.input].flat().join(','))
    const values = Object.entries(parsed.flags).map(([name, value]) => [name, Array.isArray(value) ? value.filter((one) => one !== '') : value])
    const flags = Object.fromEntries(values) as FlagValues<Flags & BaseFlags> & FlagValues<LoggingFlags>
    const extra = (parsed.argv as string[]).slice(Object.keys(parsed.args).length)
    const log = readLogOptions(flags, this.scopes)
    return { flags, args: parsed.args as ArgValues<Args>, given, log, ignored: [...ignored, ...extra], warnings }
  }
}

/** Adds to the error about an unknown flag the nearest one that is known. */
function withNearFlag(error: unknown, names: readonly string[]): unknown {
  const { flags: [unknown] = [] } = error as { readonly flags?: readonly string[] }
  if (!(error instanceof Error) || typeof unknown !== 'string') return error
  const near = nearest(
    unknown.split('=', 1)[0] as string,
    names.map((name) => `--${name}`),
  )
  if (near !== undefined) error.message = error.message.replace(/$/m, `; did you mean ${near}?`)
  return error
}

/**
 * Returns the flags in the form in which they are parsed: switches take `true` or `false`, and the value of a flag's variable is its default.
 * An empty variable counts as unset.
 */
async function parsableFlags(flags: FlagInput, environment: NodeJS.ProcessEnv): Promise<{ flags: FlagInput; warnings: string[] }> {
  const warnings: string[] = []
  const parsable: Record<string, OptionFlag<unknown>> = {}
  for (const [name, { env, ...declared }] of Object.entries(flags)) {
    const flag = (declared.type === 'boolean' ? switchOf(name, declared) : declared) as OptionFlag<unknown>
    parsable[name] = flag
    const given = env === undefined ? undefined : environment[env]
    if (!given) continue
    try {
      parsable[name] = { ...flag, default: await flag.parse(given, undefined as never, { ...flag, name }) }
    } catch {
      warnings.push(`environment variable ${env}: ${JSON.stringify(given.slice(0, 100))} cannot be read; it is left out`)
    }
  }
  return { flags: parsable, warnings }
}

/** Returns the option that a switch is in a translated line. */
const switchOf = (name: string, flag: object) => ({
  default: false,
  ...flag,
  type: 'option',
  multiple: false,
  input: [],
  parse: async (given: string) => isOn(name, given),
})
