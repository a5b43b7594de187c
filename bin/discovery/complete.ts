/** `pilot-discovery complete`. */
import { printCompletions } from '../../src/cli/completion/complete-command.ts'
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'

/** Prints what may stand where a command line ends. Shells run it (`autocomplete`). */
export class Complete extends DiscoveryCommand {
  static override hidden = true
  static override strict = false

  override async run(): Promise<void> {
    await printCompletions(this.argv, this.config, this.scopes, async (value, given) => {
      const { valuesOfServer } = await import('../../actors/discovery/commands/values-of-server.ts')
      return valuesOfServer(value, given)
    })
  }
}
