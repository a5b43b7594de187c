/** `pilot-discovery request`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { printPage } from '../../src/cli/print.ts'
import { requestArgs, requestFlags, requestLine } from '../../src/cli/request-args.ts'
import { meshClusterFlags } from '../../src/cli/server-flags.ts'

/** Sends a request to the admin socket of the server on this machine, or to a replica in a cluster. */
export class Request extends DiscoveryCommand {
  static override summary = "Make an HTTP request to the discovery component's metrics and debug endpoint"
  static override description =
    'Asks the server whose admin socket is at ./var/run/mesh/admin.sock, or where MESHD_ADMIN_SOCKET says; with --cluster a replica of discovery in a cluster, which is named on stderr and serves the pages below /debug.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> GET /debug/syncz',
    '<%= config.bin %> <%= command.id %> POST /debug/adsz push=true',
    '<%= config.bin %> <%= command.id %> GET /debug/syncz --cluster',
  ]
  static override flags = { ...meshClusterFlags, ...requestFlags }
  static override args = requestArgs('request body: a form such as name=value&other=value')

  override async run(): Promise<void> {
    const { args, flags } = await this.line(Request)
    const { askedPage } = await import('../../actors/discovery/commands/asked-page.ts')
    printPage(await askedPage(flags, { ...requestLine(args), form: args.body }), flags.json)
  }
}
