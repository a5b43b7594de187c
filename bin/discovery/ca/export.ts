/** `pilot-discovery ca export`. */
import { exportFiles } from '../../../src/cli/ca.ts'
import { exportFlags } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Writes the certificates of the authority. */
export class CaExport extends CaCommand {
  static override summary = 'Write the certificates of the authority to files'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --to ./backup',
    '<%= config.bin %> <%= command.id %> --to ./backup --private-key',
    '<%= config.bin %> <%= command.id %> --truststore roots.p12 --password-file password',
  ]
  static override flags = exportFlags

  override async run(): Promise<void> {
    const { flags, given } = await this.line(CaExport)
    await exportFiles(this.access(flags), flags, given.has('to'))
  }
}
