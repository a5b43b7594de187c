/** `pilot-discovery ca accept-time`. */
import { acceptTime } from '../../../src/cli/ca.ts'
import { outputFlag } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Accepts the time of the wall clock. */
export class CaAcceptTime extends CaCommand {
  static override summary = 'Take the wall clock for right, although it contradicts the recorded time'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = outputFlag

  override async run(): Promise<void> {
    const { flags } = await this.line(CaAcceptTime)
    await acceptTime(this.access(flags), flags)
  }
}
