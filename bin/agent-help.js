import { describedCommands } from '../src/cli/help.ts'
import { agentCommands } from '../src/cli/pilot-agent.ts'
import { showHelp } from './command-help.js'

const nothing = async () => {}

/** The described commands, for the command-line library. Their actions do nothing here. */
export const commands = describedCommands(agentCommands({ clean: nothing, proxy: nothing, redirect: nothing, request: nothing, wait: nothing }))

/** Prints help and completions, and reports unknown commands. */
export const help = (given) =>
  showHelp(given, {
    bin: 'pilot-agent',
    module: 'agent-help.js',
    description: 'Runs beside a workload: starts its proxy and keeps it supplied with certificates and configuration.',
  })
