/** `pilot-discovery push watch`. */
import { DiscoveryCommand } from '../../../src/cli/discovery-command.ts'
import { pushWatchFlags } from '../../../src/cli/server-flags.ts'

/** Prints pushes as proxies answer them, until it is ended. */
export class PushWatch extends DiscoveryCommand {
  static override summary = 'Watch pushes of changes: what caused each, what was sent, and when proxies had it'
  static override description =
    'Prints a line for each push when all proxies that it concerns have answered, and one for a push that some have not answered after ten seconds. Refusals follow it with proxy and reason. 50 % and 99 % of the proxies have a push within the times below these heads, the last within that below LAST, counted from the change. Ends with Ctrl-C.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --past --namespace shop',
    '<%= config.bin %> <%= command.id %> --json | jq .objects',
  ]
  static override flags = pushWatchFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(PushWatch)
    const { pushWatch } = await import('../../../actors/discovery/commands/push-watch.ts')
    await pushWatch(flags)
  }
}
