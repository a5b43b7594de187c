/** `pilot-agent request`. */
import { AgentCommand } from '../../src/cli/agent-command.ts'
import { printPage } from '../../src/cli/print.ts'
import { requestArgs, requestFlags, requestLine } from '../../src/cli/request-args.ts'

/** Sends a request to the proxy's admin port. */
export class Request extends AgentCommand {
  static override summary = 'Make an HTTP request to the proxy admin API'
  static override description = 'The port is that of the proxy configuration of the environment, 15000 unless it says another.'
  static override examples = ['<%= config.bin %> <%= command.id %> GET /stats', '<%= config.bin %> <%= command.id %> POST /logging?level=debug']
  static override flags = requestFlags
  static override args = requestArgs('request body')

  override async run(): Promise<void> {
    const { args, flags } = await this.line(Request)
    const { askProxy } = await import('../../actors/agent/commands/request.ts')
    printPage(await askProxy({ ...requestLine(args), body: args.body }), flags.json)
  }
}
