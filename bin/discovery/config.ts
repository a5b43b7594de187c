/** `pilot-discovery config`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { configFlags, printSettings } from '../../src/cli/settings.ts'

/** Prints what a server would be set to. */
export class Config extends DiscoveryCommand {
  static override summary = 'Show each variable and flag that a server started here would have, with value, default and origin'
  static override description =
    'Takes the flags of "pilot-discovery discovery" and asks no server. Names variables that look misspelt. Exits with 1 when a value cannot be used.'
  static override examples = ['<%= config.bin %> <%= command.id %> --changed', '<%= config.bin %> <%= command.id %> --registries Mock --json']
  static override flags = configFlags

  override async run(): Promise<void> {
    const { flags, given } = await this.line(Config)
    if (!(await printSettings({ flags, given, environment: process.env, logging: Config.baseFlags }))) process.exitCode = 1
  }
}
