/** `pilot-discovery authz`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { authzFlags, proxyArgument } from '../../src/cli/server-flags.ts'

/** Prints whether a proxy lets a request pass. */
export class Authz extends DiscoveryCommand {
  static override summary = 'Show whether a proxy lets a request pass, and which policy and rule decides'
  static override description = 'Exits with 1 when the request is denied.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> web-0.shop --method POST --path /orders --port 8080',
    '<%= config.bin %> <%= command.id %> web-0 --principal cluster.local/ns/shop/sa/cart --header x-user:anna',
  ]
  static override flags = authzFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(Authz)
    const { authz } = await import('../../actors/discovery/commands/authz.ts')
    await authz(flags, args.proxy)
  }
}
