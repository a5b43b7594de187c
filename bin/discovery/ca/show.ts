/** `pilot-discovery ca show`. */
import { show } from '../../../src/cli/ca.ts'
import { outputFlag } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Prints the state of the authority. */
export class CaShow extends CaCommand {
  static override summary = 'Show roots, intermediates, expiries and the stage of a rotation'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> -o json']
  static override flags = outputFlag

  override async run(): Promise<void> {
    const { flags } = await this.line(CaShow)
    await show(this.access(flags), flags)
  }
}
