/** `pilot-agent mesh-clean-iptables`. */
import { AgentCommand } from '../../src/cli/agent-command.ts'
import { cleanFlags } from '../../src/cli/redirect-flags.ts'

/** Removes the redirect rules. A dry run only prints the commands. */
export class MeshCleanIptables extends AgentCommand {
  static override summary = 'Remove the rules that redirect traffic to the proxy'
  static override description = 'Removes all that mesh-iptables makes, and nothing else.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --dry-run']
  static override flags = cleanFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(MeshCleanIptables)
    const { cleanRedirection } = await import('../../actors/agent/redirect/clean.ts')
    await cleanRedirection(flags['dry-run'])
  }
}
