/** `pilot-discovery proxy-config endpoints`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyConfigFlags } from '../../../src/cli/server-flags.ts'

/** Prints the endpoints of a proxy. */
export class ProxyConfigEndpoints extends DiscoveryCommand {
  static override summary = 'Show the endpoints that a proxy is sent'
  static override examples = ['<%= config.bin %> <%= command.id %> web-0.shop', '<%= config.bin %> <%= command.id %> web-0 --name reviews --json']
  static override flags = proxyConfigFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigEndpoints)
    const { proxyConfig } = await import('../../../actors/discovery/commands/proxy-config.ts')
    await proxyConfig('endpoints', flags, args.proxy)
  }
}
