/** `pilot-discovery explain`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { explainFlags, proxyArgument, targetArgument } from '../../src/cli/server-flags.ts'

/** Prints where a proxy sends a request, or why it has a resource. */
export class Explain extends DiscoveryCommand {
  static override summary = 'Show where a proxy sends a request and why, or why it has a resource'
  static override description =
    'Names the listener, the routes, the clusters and the endpoints that a request takes, with the objects and fields that they were made from; of each other route the first condition that does not hold; and what keeps a host from the proxy. Exits with 1 when the request fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> web-0.shop http://reviews:9080/ratings --header end-user:anna',
    "<%= config.bin %> <%= command.id %> web-0 'outbound|9080|v2|reviews.shop.svc.cluster.local'",
    '<%= config.bin %> <%= command.id %> web-0 9080 --type rds',
  ]
  static override flags = explainFlags
  static override args = { proxy: proxyArgument, target: targetArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(Explain)
    const { explain } = await import('../../actors/discovery/commands/explain.ts')
    await explain(flags, args.proxy, args.target)
  }
}
