/** `pilot-agent wait`. */
import { AgentCommand, agentProcessFlags } from '../../src/cli/agent-command.ts'
import { waitFlags } from '../../src/cli/agent-flags.ts'
import { waitSettings } from '../../src/cli/agent-options.ts'

/** Waits until the proxy is ready. */
export class Wait extends AgentCommand {
  static override summary = 'Wait until the proxy is ready'
  static override description = 'Asks the URL until it answers with status 200. Meant to hold an application back until its proxy is ready.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --timeoutSeconds 120']
  static override baseFlags = agentProcessFlags
  static override flags = waitFlags

  override async run(): Promise<void> {
    const { flags, log } = await this.line(Wait)
    const settings = waitSettings(flags)
    const { waitUntilReady } = await import('../../actors/agent/commands/wait.ts')
    await waitUntilReady(settings, log)
  }
}
