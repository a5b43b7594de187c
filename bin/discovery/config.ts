/** `pilot-discovery config`. */
import { DiscoveryCommand, discoveryProcessFlags } from '../../src/cli/discovery-command.ts'
import { flagFaults } from '../../src/cli/discovery-options.ts'
import { checkConfigLine, configFlags, printSettings, settingsOf } from '../../src/cli/settings.ts'

/** Prints what a server is or would be set to. */
export class Config extends DiscoveryCommand {
  static override summary = 'Show each variable and flag that a server started here would have, or one that runs has, with value, default and origin'
  static override description =
    'Takes the flags of "pilot-discovery discovery" and asks no server, or with --running only asks one. Names variables that look misspelt. Exits with 1 when a value cannot be used.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --changed',
    '<%= config.bin %> <%= command.id %> --registries Mock --json',
    '<%= config.bin %> <%= command.id %> --running --changed',
  ]
  static override baseFlags = discoveryProcessFlags
  static override flags = configFlags

  override async run(): Promise<void> {
    const { flags, given } = await this.line(Config)
    checkConfigLine(given, flags.running)
    const found = flags.running
      ? await (await import('../../actors/discovery/commands/running-settings.ts')).runningSettings(flags)
      : await settingsOf({ given, faults: flagFaults(flags), logging: Config.baseFlags }, process.env)
    printSettings(found, flags)
    if (!found.settings.every(({ isUsable }) => isUsable)) process.exitCode = 1
  }
}
