import { describedCommands } from '../src/cli/help.ts'
import { discoveryCommands } from '../src/cli/pilot-discovery.ts'
import { showHelp } from './command-help.js'

/** The commands, for the command-line library. */
export const commands = describedCommands(
  discoveryCommands(
    async () => {},
    async () => '',
    async () => {},
  ),
)

/** Help, completion, and what is said of commands that do not exist. */
export const help = (given) =>
  showHelp(given, {
    bin: 'pilot-discovery',
    module: 'discovery-help.js',
    topics: { ca: { description: 'Look at the certificate authority, rotate its root, write and check its files' } },
    description: 'Fleet-wide traffic management for the mesh: programs proxies over XDS.',
  })
