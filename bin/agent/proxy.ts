/** `pilot-agent proxy`. */
import { string } from '@oclif/core/args'
import { AgentCommand, agentProcessFlags } from '../../src/cli/agent-command.ts'
import { proxyFlags } from '../../src/cli/agent-flags.ts'
import { proxyOptions } from '../../src/cli/agent-options.ts'

/** Runs the proxy and the agent's servers until they have ended. */
export class RunProxy extends AgentCommand {
  static override summary = 'Run the proxy and everything that serves it'
  static override description =
    'Starts the proxy, watches it, and serves its certificates and configuration. The role is sidecar, beside one workload, or router, a gateway. Flags and further arguments that are not known are ignored, for command lines of other releases.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> sidecar',
    '<%= config.bin %> <%= command.id %> router --proxyLogLevel info',
    '<%= config.bin %> <%= command.id %> sidecar --serviceCluster cart.shop --log_output_level default:debug',
  ]
  static override args = { role: string({ description: 'sidecar (default) or router', ignoreStdin: true }) }
  static override baseFlags = agentProcessFlags
  static override flags = proxyFlags
  /** Unknown flags and further arguments are ignored. */
  static override strict = false

  override async run(): Promise<void> {
    const line = await this.line(RunProxy)
    const options = proxyOptions(line)
    const { runAgent } = await import('../../actors/agent/main.ts')
    await runAgent(options, line.log)
  }
}
