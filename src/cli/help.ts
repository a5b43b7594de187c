/** Converts commands to classes of the command-line library, for help and completion. */
import { Args, Command, Flags, type Interfaces } from '@oclif/core'
import type { CommandSpec } from './command-line.ts'
import type { FlagTable } from './flag-table.ts'

/** Returns classes that describe the commands, by command id. The classes are not run. */
export const describedCommands = (commands: Readonly<Record<string, CommandSpec>>): Record<string, typeof Command> =>
  Object.fromEntries(Object.entries(commands).map(([name, spec]) => [name.replaceAll(' ', ':'), describedCommand(spec)]))

function describedCommand(spec: CommandSpec): typeof Command {
  const { summary, description, examples } = spec
  class Described extends Command {
    static override summary = summary
    static override examples = examples.map((line) => `<%= config.bin %> <%= command.id %> ${line}`)
    static override args = Object.fromEntries(spec.args.map(({ name, about, required }) => [name, Args.string({ description: about, required })]))
    static override flags = Object.assign({}, ...spec.flags.map(({ heading, table }) => describedFlags(table, heading)))

    override async run(): Promise<void> {}
  }
  if (description !== undefined) Described.description = description
  return Described
}

function describedFlags(table: FlagTable, heading: string): Interfaces.FlagInput {
  const flags: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) {
    const common = { description: spec.about, ...(heading === '' ? {} : { helpGroup: heading }), ...(spec.char ? { char: spec.char as 'a' } : {}) }
    const several = { multiple: true, multipleNonGreedy: true } as const
    if (spec.type === 'switch') flags[name] = Flags.boolean(common)
    else if (spec.type === 'slice')
      flags[name] = Flags.string({ ...common, ...several, delimiter: ',', default: [...spec.default], helpValue: 'a,b' })
    else if (spec.type === 'array') flags[name] = Flags.string({ ...common, ...several, default: [...spec.default], helpValue: 'path' })
    else flags[name] = Flags.string({ ...common, helpValue: spec.type, ...(spec.default === '' ? {} : { default: String(spec.default) }) })
  }
  return flags as Interfaces.FlagInput
}
