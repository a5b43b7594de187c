/** `pilot-discovery discovery`. */
import { DiscoveryCommand, discoveryProcessFlags } from '../../src/cli/discovery-command.ts'
import { discoveryFlags } from '../../src/cli/discovery-flags.ts'
import { discoveryOptions } from '../../src/cli/discovery-options.ts'
import { settingsOf } from '../../src/cli/settings.ts'

/** Runs the discovery service until it is stopped. */
export class Discovery extends DiscoveryCommand {
  static override summary = 'Start the proxy discovery service'
  static override description = 'Reads configuration and service registries and programs proxies over XDS.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --registries Mock',
    '<%= config.bin %> <%= command.id %> --registries Mock --configDir ./config',
  ]
  static override baseFlags = discoveryProcessFlags
  static override flags = discoveryFlags

  override async run(): Promise<void> {
    const { flags, given, log } = await this.line(Discovery)
    const options = discoveryOptions(flags, given)
    const { runDiscovery } = await import('../../actors/discovery/main.ts')
    await runDiscovery(options, log, () => settingsOf({ given, faults: [], logging: Discovery.baseFlags }, process.env))
  }
}
