/** `pilot-discovery ca distrust`. */
import { distrust } from '../../../src/cli/ca.ts'
import { distrustFlags, rootArgument } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Distrusts a root. */
export class CaDistrust extends CaCommand {
  static override summary = 'Distrust a root at once: it is not sent to workloads and not accepted from clients any more'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4ab1c34f9d11e02a --dry-run',
    '<%= config.bin %> <%= command.id %> 4ab1c34f9d11e02a',
  ]
  static override args = { root: rootArgument }
  static override flags = distrustFlags

  override async run(): Promise<void> {
    const { flags, args } = await this.line(CaDistrust)
    await distrust(this.access(flags), flags, args.root)
  }
}
