/** `pilot-discovery token`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { tokenFlags } from '../../src/cli/discovery-flags.ts'
import { tokenOrder } from '../../src/cli/discovery-options.ts'
import { print, printJson } from '../../src/cli/print.ts'

/** Issues a token for a workload, and prints it or writes it to a file. */
export class Token extends DiscoveryCommand {
  static override summary = 'Make a token for a workload, which the discovery service of this machine accepts'
  static override description =
    'Signs with a key of its own in ./var/lib/mesh/ca, or where MESHD_CA_STATE_DIR says: a service with the same directory accepts the token without further configuration, unless it runs in an orchestrator. The key is made when there is none; whoever can read it can be any workload.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --namespace shop --service-account cart',
    '<%= config.bin %> <%= command.id %> -n shop --ttl 1h -o ./var/run/secrets/tokens/mesh-token',
  ]
  static override flags = tokenFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(Token)
    const order = tokenOrder(flags)
    const { issueToken } = await import('../../actors/discovery/tokens/token-issuer.ts')
    const token = await issueToken(order)
    if (flags.json) printJson(order.output === '' ? { token } : { file: order.output })
    else if (order.output === '') print(token)
  }
}
