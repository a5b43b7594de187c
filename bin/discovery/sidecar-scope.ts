/** `pilot-discovery sidecar-scope`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { proxyArgument, sidecarScopeFlags } from '../../src/cli/server-flags.ts'

/** Prints a Sidecar. */
export class SidecarScope extends DiscoveryCommand {
  static override summary = 'Print the Sidecar that cuts what a proxy is sent and never uses, as YAML to apply'
  static override description =
    'Keeps the hosts to whose clusters the Envoy of the proxy has sent something, by its statistics, and the hosts whose routes lead there. Says from when the statistics are: what is used once a month is not in those of a day. Try the result with "pilot-discovery diff" before you apply it.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> web-0.shop --envoy localhost:15000 > sidecar.yaml',
    '<%= config.bin %> <%= command.id %> web-0.shop --envoy localhost:15000 | <%= config.bin %> diff -',
  ]
  static override flags = sidecarScopeFlags
  static override args = { proxy: proxyArgument }

  override async run(): Promise<void> {
    const { flags, args } = await this.line(SidecarScope)
    const { sidecarScope } = await import('../../actors/discovery/commands/sidecar-scope.ts')
    await sidecarScope(flags, args.proxy)
  }
}
