/** `pilot-discovery version`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { printVersion, versionFlags } from '../../src/cli/version.ts'

/** Prints the build information. */
export class Version extends DiscoveryCommand {
  static override summary = 'Print build version information'
  static override flags = versionFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(Version)
    printVersion(flags)
  }
}
