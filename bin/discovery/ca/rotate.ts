/** `pilot-discovery ca rotate`. */
import { rotate } from '../../../src/cli/ca.ts'
import { rotateFlags } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Rotates the own root. */
export class CaRotate extends CaCommand {
  static override summary = 'Begin the rotation of the own root, or take it one stage further'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --dry-run',
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --force',
  ]
  static override flags = rotateFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(CaRotate)
    await rotate(this.access(flags), flags)
  }
}
