/** `pilot-discovery proxy-config bootstrap`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { proxyArgument, proxyBootstrapFlags } from '../../../src/cli/server-flags.ts'

/** Prints the bootstrap of a proxy. */
export class ProxyConfigBootstrap extends DiscoveryCommand {
  static override summary = 'Show what the Envoy of a proxy was started with, without secrets'
  static override examples = [
    '<%= config.bin %> <%= command.id %> web-0.shop --envoy localhost:15000',
    '<%= config.bin %> <%= command.id %> web-0 --json',
  ]
  static override flags = proxyBootstrapFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyConfigBootstrap)
    const { proxyBootstrap } = await import('../../../actors/discovery/commands/proxy-bootstrap.ts')
    await proxyBootstrap(flags, args.proxy)
  }
}
