import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Config, run as runCommand, settings } from '@oclif/core'
import { normalizeArguments } from '../src/cli/flag-table.ts'
import { discoveryCommands, flagTables } from '../src/cli/pilot-discovery.ts'

const failed = 255

/** The commands, for the command-line library. */
export const commands = discoveryCommands(async (options, log) => {
  const { runDiscovery } = await import('../actors/discovery/main.ts')
  await runDiscovery(options, log)
})

/** Runs the command line. Errors go to stderr as `Error: ...` and end the process with 255. */
export async function main(given) {
  settings.enableAutoTranspile = false
  try {
    const root = fileURLToPath(new URL('..', import.meta.url))
    const pjson = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    pjson.oclif = {
      bin: 'pilot-discovery',
      dirname: 'pilot-discovery',
      topicSeparator: ' ',
      commands: { strategy: 'explicit', target: './bin/discovery-main.js', identifier: 'commands' },
      plugins: ['@oclif/plugin-help', '@oclif/plugin-autocomplete'],
      description: 'Fleet-wide traffic management for the mesh: programs proxies over XDS.',
    }
    const config = await Config.load({ root, pjson })
    await runCommand(normalizeArguments(given, Object.keys(commands), flagTables), config)
  } catch (error) {
    const code = error?.oclif?.exit
    if (code === 0) process.exit(0)
    const message = String(error?.message ?? error)
      .split('\nSee more help')[0]
      .replace(/^command (\w+):(\S*) not found$/, (whole, command, rest) =>
        command in commands ? `unexpected argument ${JSON.stringify(rest)} for "${command}"` : whole,
      )
    process.stderr.write(`Error: ${message}\n`)
    process.exit(failed)
  }
}
