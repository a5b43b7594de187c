/** The base of the commands of `pilot-discovery`. */
import { discoveryScopes } from '../logging/levels.ts'
import { discoveryLogging, rootFlags } from './discovery-flags.ts'
import { underHeading, unshown } from './flags.ts'
import { MeshCommand } from './mesh-command.ts'

/** The root flags and the logging flags, for commands that they have an effect on: all accept them. */
export const discoveryProcessFlags = { ...underHeading('GLOBAL', rootFlags), ...underHeading('LOGGING', discoveryLogging) }

/** A command that accepts the root flags and the logging flags. */
export abstract class DiscoveryCommand extends MeshCommand {
  static override baseFlags = unshown(discoveryProcessFlags)
  protected override readonly scopes = discoveryScopes
}
