/** `pilot-discovery proxy-config routes`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyConfigFlags } from '../../../src/cli/server-flags.ts'

/** Prints the routes of a proxy. */
export class ProxyConfigRoutes extends DiscoveryCommand {
  static override summary = 'Show the routes that a proxy is sent'
  static override examples = ['<%= config.bin %> <%= command.id %> web-0.shop', '<%= config.bin %> <%= command.id %> web-0 --name reviews --json']
  static override flags = proxyConfigFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigRoutes)
    const { proxyConfig } = await import('../../../actors/discovery/commands/proxy-config.ts')
    await proxyConfig('routes', flags, args.proxy)
  }
}
