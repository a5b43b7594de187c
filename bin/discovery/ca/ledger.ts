/** `pilot-discovery ca ledger`. */
import { showLedger } from '../../../src/cli/ca.ts'
import { ledgerFlags } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Prints the issued certificates. */
export class CaLedger extends CaCommand {
  static override summary = 'Show who holds which certificate until when'
  static override examples = ['<%= config.bin %> <%= command.id %> --identity ns/shop/']
  static override flags = ledgerFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(CaLedger)
    await showLedger(this.access(flags), flags)
  }
}
