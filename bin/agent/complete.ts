/** `pilot-agent complete`. */
import { AgentCommand } from '../../src/cli/agent-command.ts'
import { printCompletions } from '../../src/cli/completion/complete-command.ts'

/** Prints what may stand where a command line ends. Shells run it (`autocomplete`). */
export class Complete extends AgentCommand {
  static override hidden = true
  static override strict = false

  override async run(): Promise<void> {
    await printCompletions(this.argv, this.config, this.scopes, async (value) => {
      if (value !== 'request path') return []
      const { pagesOfProxy } = await import('../../actors/agent/commands/request.ts')
      return pagesOfProxy()
    })
  }
}
