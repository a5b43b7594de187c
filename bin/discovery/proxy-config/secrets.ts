/** `pilot-discovery proxy-config secrets`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyConfigFlags } from '../../../src/cli/server-flags.ts'

/** Prints the secrets of a proxy. */
export class ProxyConfigSecrets extends DiscoveryCommand {
  static override summary = 'Show the secrets that a proxy asks for, without their values'
  static override examples = ['<%= config.bin %> <%= command.id %> web-0.shop', '<%= config.bin %> <%= command.id %> web-0 --json']
  static override flags = proxyConfigFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigSecrets)
    const { proxySecrets } = await import('../../../actors/discovery/commands/proxy-config.ts')
    await proxySecrets(flags, args.proxy)
  }
}
