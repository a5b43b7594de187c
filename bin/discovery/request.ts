/** `pilot-discovery request`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { printPage } from '../../src/cli/print.ts'
import { requestArgs, requestLine } from '../../src/cli/request-args.ts'

/** Sends a request to the admin socket of the server on this machine. */
export class Request extends DiscoveryCommand {
  static override summary = "Make an HTTP request to the discovery component's metrics and debug endpoint"
  static override description = 'Asks the server whose admin socket is at ./var/run/mesh/admin.sock, or where MESHD_ADMIN_SOCKET says.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> GET /debug/syncz',
    '<%= config.bin %> <%= command.id %> POST /debug/adsz push=true',
  ]
  static override args = requestArgs('request body: a form such as name=value&other=value')

  override async run(): Promise<void> {
    const { args } = await this.line(Request)
    const { askServer } = await import('../../actors/http/admin-request.ts')
    printPage(await askServer({ ...requestLine(args), form: args.body }))
  }
}
