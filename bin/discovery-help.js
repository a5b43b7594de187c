import { describedCommands } from '../src/cli/help.ts'
import { discoveryCommands } from '../src/cli/pilot-discovery.ts'
import { showHelp } from './command-help.js'

/** The described commands, for the command-line library. Their actions do nothing here. */
export const commands = describedCommands(
  discoveryCommands(
    async () => {},
    async () => '',
    async () => {},
  ),
)

/** Prints help and completions, and reports unknown commands. */
export const help = (given) =>
  showHelp(given, {
    bin: 'pilot-discovery',
    module: 'discovery-help.js',
    topics: { ca: { description: 'Look at the certificate authority, rotate its root, write and check its files' } },
    description: 'Fleet-wide traffic management for the mesh: programs proxies over XDS.',
  })
