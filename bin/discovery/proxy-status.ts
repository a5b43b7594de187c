/** `pilot-discovery proxy-status`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { maybeProxyArgument, proxyStatusFlags } from '../../src/cli/server-flags.ts'

/** Prints whether proxies have what they are sent. */
export class ProxyStatus extends DiscoveryCommand {
  static override summary = 'Show which proxies have what they are sent, which are behind, and which refused what'
  static override description =
    'SYNCED: the proxy has acknowledged all that it is sent. STALE: it owes an answer. REJECTED: it refused something, and has the last good resource or one without the cause. Asks all replicas that ask each other.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> web-0.shop',
    '<%= config.bin %> <%= command.id %> --address meshd.example:8080 --token-file token --json',
  ]
  static override flags = proxyStatusFlags
  static override args = { proxy: maybeProxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(ProxyStatus)
    const { proxyStatus } = await import('../../actors/discovery/commands/proxy-status.ts')
    await proxyStatus(flags, args.proxy ?? '')
  }
}
