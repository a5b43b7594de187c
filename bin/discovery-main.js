import { discoveryCommands } from '../src/cli/pilot-discovery.ts'
import { runCommand } from './run-command.js'

const commands = discoveryCommands(
  async (options, log) => {
    const { runDiscovery } = await import('../actors/discovery/main.ts')
    await runDiscovery(options, log)
  },
  async (order) => (await import('../actors/discovery/token-issuer.ts')).issueToken(order),
  async () => (await import('../actors/discovery/authority/command.ts')).caWork(process.env),
)

/** Runs the command line. */
export const main = (given) => runCommand(given, commands, async () => (await import('./discovery-help.js')).help)
