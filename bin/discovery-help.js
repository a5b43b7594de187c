import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Config, run, settings } from '@oclif/core'
import { describedCommand } from '../src/cli/help.ts'
import { discoveryCommands } from '../src/cli/pilot-discovery.ts'

/** The commands, for the command-line library. */
export const commands = Object.fromEntries(
  Object.entries(
    discoveryCommands(
      async () => {},
      async () => '',
      async () => {},
    ),
  ).map(([name, spec]) => [name.replaceAll(' ', ':'), describedCommand(spec)]),
)

/** Help, completion, and what is said of commands that do not exist. */
export async function help(given) {
  settings.enableAutoTranspile = false
  const root = fileURLToPath(new URL('..', import.meta.url))
  const pjson = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  pjson.oclif = {
    bin: 'pilot-discovery',
    dirname: 'pilot-discovery',
    topicSeparator: ' ',
    topics: { ca: { description: 'Look at the certificate authority, rotate its root, write and check its files' } },
    commands: { strategy: 'explicit', target: './bin/discovery-help.js', identifier: 'commands' },
    plugins: ['@oclif/plugin-help', '@oclif/plugin-autocomplete'],
    description: 'Fleet-wide traffic management for the mesh: programs proxies over XDS.',
  }
  await run([...given], await Config.load({ root, pjson }))
}
