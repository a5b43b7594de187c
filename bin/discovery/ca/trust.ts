/** `pilot-discovery ca trust`. */
import { trust } from '../../../src/cli/ca.ts'
import { outputFlag, rootArgument } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Trusts a root again. */
export class CaTrust extends CaCommand {
  static override summary = 'Trust a root again that was distrusted'
  static override examples = ['<%= config.bin %> <%= command.id %> 4ab1c34f9d11e02a']
  static override args = { root: rootArgument }
  static override flags = outputFlag

  override async run(): Promise<void> {
    const { flags, args } = await this.line(CaTrust)
    await trust(this.access(flags), flags, args.root)
  }
}
