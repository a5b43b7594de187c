import { readCommandLine } from '../src/cli/command-line.ts'
import { discoveryCommands } from '../src/cli/pilot-discovery.ts'

const failed = 255

const commands = discoveryCommands(
  async (options, log) => {
    const { runDiscovery } = await import('../actors/discovery/main.ts')
    await runDiscovery(options, log)
  },
  async (order) => (await import('../actors/discovery/token-issuer.ts')).issueToken(order),
  async () => (await import('../actors/discovery/authority/command.ts')).caWork(process.env),
)

/** Runs the command line. Errors go to stderr as `Error: ...` and end the process with 255. */
export async function main(given) {
  // Whoever reads the output may have read enough.
  process.stdout.on('error', () => {})
  try {
    const found = readCommandLine(given, commands)
    if (found) await found.command.run(found.line)
    else await (await import('./discovery-help.js')).help(given)
  } catch (error) {
    if (error?.oclif?.exit === 0) process.exit(0)
    process.stderr.write(`Error: ${String(error?.message ?? error).split('\nSee more help')[0]}\n`)
    process.exit(failed)
  }
}
