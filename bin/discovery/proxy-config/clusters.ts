/** `pilot-discovery proxy-config clusters`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyConfigFlags } from '../../../src/cli/server-flags.ts'

/** Prints the clusters of a proxy. */
export class ProxyConfigClusters extends DiscoveryCommand {
  static override summary = 'Show the clusters that a proxy is sent'
  static override examples = ['<%= config.bin %> <%= command.id %> web-0.shop', '<%= config.bin %> <%= command.id %> web-0 --name reviews --json']
  static override flags = proxyConfigFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigClusters)
    const { proxyConfig } = await import('../../../actors/discovery/commands/proxy-config.ts')
    await proxyConfig('clusters', flags, args.proxy)
  }
}
