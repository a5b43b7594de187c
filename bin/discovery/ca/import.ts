/** `pilot-discovery ca import`. */
import { importFiles } from '../../../src/cli/ca.ts'
import { importFlags } from '../../../src/cli/ca-flags.ts'
import { CaCommand } from '../../ca-command.ts'

/** Plugs an authority in. */
export class CaImport extends CaCommand {
  static override summary = 'Check the files of an authority and plug them in (ROOT_CA_DIR)'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --cert ca-cert.pem --key ca-key.pem --root root-cert.pem',
    '<%= config.bin %> <%= command.id %> --pkcs12 ca.p12 --password-file password',
  ]
  static override flags = importFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(CaImport)
    await importFiles(this.access(), flags)
  }
}
