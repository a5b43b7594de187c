/** The base of the commands `pilot-discovery ca`. */
import type { CaAccess } from '../src/cli/ca.ts'
import { DiscoveryCommand } from '../src/cli/discovery-command.ts'

/** A command that works on the certificate authority. */
export abstract class CaCommand extends DiscoveryCommand {
  static override description =
    'Asks the server on this machine (MESHD_ADMIN_SOCKET); when none runs, works on the stored state (MESHD_CA_STATE_DIR). With --orchconfig or --namespace, works on the Secrets of a cluster.'

  /** The authority that the flags mean. */
  protected access(place = { orchconfig: '', namespace: '' }): CaAccess {
    const isNamed = place.orchconfig !== '' || place.namespace !== ''
    const work = async () => (await import('../actors/discovery/authority/command.ts')).caWork(process.env, isNamed ? place : undefined)
    return { asksServer: !isNamed, work }
  }
}
