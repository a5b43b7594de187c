/** The base of the commands of `pilot-agent`. */
import { agentScopes } from '../logging/levels.ts'
import { agentLogging } from './agent-flags.ts'
import { underHeading } from './flags.ts'
import { MeshCommand } from './mesh-command.ts'

/** A command with the logging flags. */
export abstract class AgentCommand extends MeshCommand {
  static override baseFlags = underHeading('LOGGING', agentLogging)
  protected override readonly scopes = agentScopes
}
