/** The base of the commands `pilot-discovery ca`. */
import { DiscoveryCommand } from '../src/cli/discovery-command.ts'

/** A command that works on the certificate authority. */
export abstract class CaCommand extends DiscoveryCommand {
  static override description =
    'Asks the server on this machine (MESHD_ADMIN_SOCKET); when none runs, works on the stored state (MESHD_CA_STATE_DIR).'

  /** Imports the operations on files. */
  protected readonly load = async () => (await import('../actors/discovery/authority/command.ts')).caWork(process.env)
}
