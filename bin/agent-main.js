import { agentCommands } from '../src/cli/pilot-agent.ts'
import { runCommand } from './run-command.js'

/** The commands. The modules of a command are loaded when it runs. */
const commands = agentCommands({
  clean: async (isDryRun) => (await import('../actors/agent/redirect/clean.ts')).cleanRedirection(isDryRun),
  proxy: async (options, log) => (await import('../actors/agent/main.ts')).runAgent(options, log),
  request: async (request) => (await import('../actors/agent/commands/request.ts')).askProxy(request),
  redirect: async (order) => (await import('../actors/agent/redirect/redirect.ts')).redirect(order),
  wait: async (settings, log) => (await import('../actors/agent/commands/wait.ts')).waitUntilReady(settings, log),
})

/** Runs the command line. */
export const main = (given) => runCommand(given, commands, async () => (await import('./agent-help.js')).help)
