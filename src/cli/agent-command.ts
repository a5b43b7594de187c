/** The base of the commands of `pilot-agent`. */
import { agentScopes } from '../logging/levels.ts'
import { agentLogging } from './agent-flags.ts'
import { underHeading, unshown } from './flags.ts'
import { MeshCommand } from './mesh-command.ts'

/** The logging flags, for commands that they have an effect on: all accept them. */
export const agentProcessFlags = underHeading('LOGGING', agentLogging)

/** A command that accepts the logging flags. */
export abstract class AgentCommand extends MeshCommand {
  static override baseFlags = unshown(agentProcessFlags)
  protected override readonly scopes = agentScopes
}
