/** The base of the commands of `pilot-discovery`. */
import { discoveryScopes } from '../logging/levels.ts'
import { discoveryLogging, rootFlags } from './discovery-flags.ts'
import { underHeading } from './flags.ts'
import { MeshCommand } from './mesh-command.ts'

/** A command with the root flags and the logging flags. */
export abstract class DiscoveryCommand extends MeshCommand {
  static override baseFlags = { ...underHeading('GLOBAL', rootFlags), ...underHeading('LOGGING', discoveryLogging) }
  protected override readonly scopes = discoveryScopes
}
