/** `pilot-agent mesh-iptables`. */
import { AgentCommand } from '../../src/cli/agent-command.ts'
import { redirectFlags, redirectFlagsFor, redirectOrder } from '../../src/cli/redirect-flags.ts'
import { readAgentFeatures } from '../../src/config/agent-features.ts'
import { canonicalEnvironment } from '../../src/names/mesh-names.ts'

/** Applies the redirect rules and validates them. */
export class MeshIptables extends AgentCommand {
  static override summary = 'Redirect traffic to the proxy'
  static override description =
    'Sets up port forwarding for the sidecar with iptables, in one transaction for each table. Rules of an earlier run are replaced. Each flag has an environment variable of its name (--proxy-port: PROXY_PORT), which counts when the flag is not given.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> -p 15001 -z 15006 -u 1337 -m REDIRECT -i "*" -b "*" -d 15090,15021,15020',
    '<%= config.bin %> <%= command.id %> -i "*" -b "*" --dry-run --restore-format',
  ]
  static override flags = redirectFlags

  override async run(): Promise<void> {
    const environment = canonicalEnvironment(process.env)
    const { features } = readAgentFeatures(environment)
    const { flags, warnings } = await this.line({ baseFlags: MeshIptables.baseFlags, flags: redirectFlagsFor(features) }, environment)
    const { redirect } = await import('../../actors/agent/redirect/redirect.ts')
    await redirect(redirectOrder(flags, environment, features, warnings))
  }
}
