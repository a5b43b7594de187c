/** `pilot-discovery proxy-config listeners`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyConfigFlags } from '../../../src/cli/server-flags.ts'

/** Prints the listeners of a proxy. */
export class ProxyConfigListeners extends DiscoveryCommand {
  static override summary = 'Show the listeners that a proxy is sent'
  static override examples = ['<%= config.bin %> <%= command.id %> web-0.shop', '<%= config.bin %> <%= command.id %> web-0 --name reviews --json']
  static override flags = proxyConfigFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigListeners)
    const { proxyConfig } = await import('../../../actors/discovery/commands/proxy-config.ts')
    await proxyConfig('listeners', flags, args.proxy)
  }
}
