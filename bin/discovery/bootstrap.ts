/** `pilot-discovery bootstrap`. */
import { bareProxyArgument, bootstrapFlags, printBootstrap } from '../../src/cli/bare-bootstrap.ts'
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'

/** Prints the bootstrap of an Envoy without an agent. */
export class Bootstrap extends DiscoveryCommand {
  static override summary = 'Print the bootstrap of an Envoy that has no agent'
  static override description = 'The Envoy asks the control plane in plain text, and has no certificate of the mesh: proxies with an agent have.'
  static override examples = ['<%= config.bin %> <%= command.id %> gateway.demo --role router --label app=gateway > envoy.yaml']
  static override flags = bootstrapFlags
  static override args = { proxy: bareProxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(Bootstrap)
    printBootstrap(flags, args.proxy)
  }
}
