import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Config, Plugin } from '@oclif/core/config'
import { settings } from '@oclif/core/settings'
import { failedStatus } from '../src/cli/exit-status.ts'
import { findCommand } from '../src/cli/pflag.ts'
import { endWhenUnwritten } from '../src/cli/print.ts'

/** The plugins. They are loaded only for help and completion, and when a command is unknown. */
const plugins = ['help', 'autocomplete', 'not-found']

/**
 * Runs the command in the command line, or `help` when there is none or help is requested. The commands are the files in `folder`; a built
 * package has a manifest of them there, so that only the module of the command is loaded. An error is written to stderr as `Error: ...` or
 * with `--json` to stdout as `{"error": ...}`, and ends the process with the error's exit status, by default 255.
 */
export async function runCommand(given, folder, about) {
  endWhenUnwritten(failedStatus)
  // What cannot be told changes nothing.
  process.stderr.on('error', () => {})
  try {
    const config = await configOf(folder, about, [])
    const found = findCommand(given, config.commands)
    if (found) await config.runCommand(found.id, found.argv)
    else await runPlugin(given, await configOf(folder, about, plugins))
  } catch (error) {
    if (error?.oclif?.exit === 0) process.exit(0)
    const message = messageOf(error)
    if (asksForJson(given)) process.stdout.write(`${JSON.stringify({ error: message }, null, 2)}\n`)
    else process.stderr.write(`Error: ${message}\n`)
    process.exit(error?.exitStatus ?? failedStatus)
  }
}

/** Returns the library's configuration of a binary. Plugins in the directories of users are not loaded. */
async function configOf(folder, { bin, description, topics = {} }, plugins) {
  settings.enableAutoTranspile = false
  const pjson = packageAt(new URL('../', import.meta.url))
  pjson.oclif = { bin, dirname: bin, topicSeparator: ' ', additionalHelpFlags: ['-h'], topics, commands: './', description }
  const root = fileURLToPath(folder)
  const parts = [new Plugin({ root, pjson, isRoot: true }), ...plugins.map(pluginOf)]
  await Promise.all(parts.map((part) => part.load()))
  return Config.load({ root, pjson, plugins: parts })
}

/** Returns a plugin of the library. A built package has its commands and hooks beside this module; a clone has the plugin's own package. */
function pluginOf(name) {
  const built = new URL(`./plugins/${name}/`, import.meta.url)
  const folder = existsSync(built) ? built : new URL('../', import.meta.resolve(`@oclif/plugin-${name}`))
  // With the package given, the library looks for no folder of its name, which may be the one of another version.
  return new Plugin({ root: fileURLToPath(folder), pjson: packageAt(folder), isRoot: true })
}

const packageAt = (folder) => JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'))

/** Prints help and completions, and reports unknown commands. */
async function runPlugin(given, config) {
  // In a bundle, a CommonJS module has only a default export.
  const { run } = (await import('@oclif/core/run')).default
  const firstWords = new Set([...config.commandIDs, ...config.topics.map(({ name }) => name)].map((id) => id.split(':')[0]))
  const [first = '', ...rest] = given
  // The library takes all words of an unknown command as its name. Given apart, they go to the command that it suggests.
  const isUnknown = first !== '' && !first.startsWith('-') && !firstWords.has(first)
  await (isUnknown ? config.runCommand(first, rest) : run([...given], config))
}

/** Whether a command line asks for JSON. It may be one that cannot be parsed. */
const asksForJson = (given) => given.slice(0, given.includes('--') ? given.indexOf('--') : given.length).some((word) => /^--json(=true)?$/.test(word))

/** Returns the message of an error without what the library adds: the flag, which our messages name, and advice. */
const messageOf = (error) =>
  String(error?.message ?? error)
    .replace(/^Parsing --\S+ \n\t/, '')
    .split(/\n\nNote: |\nSee more help/)[0]
