import { agentCommands } from '../src/cli/pilot-agent.ts'
import { runCommand } from './run-command.js'

/** What each command does is loaded by that command only. */
const commands = agentCommands({
  proxy: async (options, log) => (await import('../actors/agent/main.ts')).runAgent(options, log),
  request: async (request) => (await import('../actors/agent/commands/request.ts')).askProxy(request),
  wait: async (settings, log) => (await import('../actors/agent/commands/wait.ts')).waitUntilReady(settings, log),
})

/** Runs the command line. */
export const main = (given) => runCommand(given, commands, async () => (await import('./agent-help.js')).help)
