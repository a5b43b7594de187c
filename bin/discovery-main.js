import { runCommand } from './run-command.js'

/** Runs the command line. The commands are the files in `discovery/`. */
export const main = (given) =>
  runCommand(given, new URL('./discovery', import.meta.url), {
    bin: 'pilot-discovery',
    description: 'Fleet-wide traffic management for the mesh: programs proxies over XDS.',
    topics: {
      ca: { description: 'Look at the certificate authority, rotate its root, write and check its files' },
      push: { description: 'Watch pushes of changes' },
      'proxy-config': { description: 'Look at what a proxy is sent: clusters, listeners, routes, endpoints, secrets, and its bootstrap' },
    },
  })
