import { describedCommands } from '../src/cli/help.ts'
import { agentCommands } from '../src/cli/pilot-agent.ts'
import { showHelp } from './command-help.js'

const nothing = async () => {}

/** The commands, for the command-line library. */
export const commands = describedCommands(agentCommands({ clean: nothing, proxy: nothing, redirect: nothing, request: nothing, wait: nothing }))

/** Help, completion, and what is said of commands that do not exist. */
export const help = (given) =>
  showHelp(given, {
    bin: 'pilot-agent',
    module: 'agent-help.js',
    description: 'Runs beside a workload: starts its proxy and keeps it supplied with certificates and configuration.',
  })
