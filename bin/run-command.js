import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { Config, Plugin } from '@oclif/core/config'
import { settings } from '@oclif/core/settings'
import { failedStatus } from '../src/cli/exit-status.ts'
import { findCommand } from '../src/cli/pflag.ts'
import { endWhenUnwritten, print } from '../src/cli/print.ts'
import { oneLine, printable } from '../src/logging/layout.ts'
import { suggestion } from '../src/model/edit-distance.ts'

/** The plugins. They are loaded only for help and completion, and when a command is unknown. */
const plugins = ['help', 'autocomplete', 'not-found']

/** The plugin that tells people at a terminal of an unknown command, on stderr, and asks them whether the nearest one is meant. */
const asking = 'not-found'

/**
 * Runs the command in the command line, or `help` when there is none or help is requested. The commands are the files in `folder`; a built
 * package has a manifest of them there, so that only the module of the command is loaded. An error is written to stderr as `Error: ...` or
 * with `--json` to stdout as `{"error": ...}`, and ends the process with the error's exit status, by default 255. A message is one line, below which
 * are the `lines` of the error, if it has some: what is not the command's own text cannot look like another line of it.
 */
export async function runCommand(given, folder, about) {
  endWhenUnwritten(failedStatus)
  // What cannot be told changes nothing.
  process.stderr.on('error', () => {})
  let known = []
  try {
    const config = await configOf(folder, about, [])
    known = config.commands.filter(({ hidden }) => !hidden).map(({ id }) => id.replaceAll(':', ' '))
    const found = findCommand(given, config.commands)
    if (found) await config.runCommand(found.id, found.argv)
    else {
      const hasAnswers = process.stdin.isTTY && !asksForJson(given)
      await runPlugin(given, await configOf(folder, about, hasAnswers ? plugins : plugins.filter((name) => name !== asking)))
    }
  } catch (error) {
    if (error?.oclif?.exit === 0) process.exit(0)
    const message = messageOf(error, given, known, about.bin)
    if (asksForJson(given)) process.stdout.write(`${printable(JSON.stringify({ error: message }, null, 2))}\n`)
    else process.stderr.write(`Error: ${error?.oclif ? libraryText(message, given) : [message, ...(error?.lines ?? [])].map(oneLine).join('\n  ')}\n`)
    process.exit(error?.exitStatus ?? failedStatus)
  }
}

/** Returns the library's configuration of a binary. Plugins in the directories of users are not loaded. */
async function configOf(folder, { bin, description, topics = {} }, plugins) {
  settings.enableAutoTranspile = false
  const pjson = packageAt(new URL('../', import.meta.url))
  pjson.oclif = {
    bin,
    dirname: bin,
    topicSeparator: ' ',
    additionalHelpFlags: ['-h'],
    topics,
    commands: './',
    description,
    helpOptions: { docopts: false },
  }
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
  const asked = withoutHelp(given, config)
  if (asksForJson(given) && asked.every((word) => config.findTopic(word) || /^--json/.test(word)))
    throw new Error(`name a command: ${commandsBelow(asked, config)}`)
  if (asked[0] === 'autocomplete') return setUpCompletion(asked.slice(1), config, () => run([...asked], config))
  const firstWords = new Set([...config.commandIDs, ...config.topics.map(({ name }) => name)].map((id) => id.split(':')[0]))
  // The plugin that asks people writes the words as they are.
  const shown = asksForJson(given) ? asked : asked.map(oneLine)
  const [first = ''] = shown
  // The library takes all words of an unknown command as its name. Given apart, they go to the command that it suggests.
  const isUnknown = first !== '' && !first.startsWith('-') && !firstWords.has(first)
  await (isUnknown ? config.runCommand(first, asked.slice(1)) : run([...shown], config))
}

/** The commands of the topic that a line names, or all. */
function commandsBelow([topic = ''], config) {
  const commands = config.commands.filter(({ hidden }) => !hidden).map(({ id }) => id.replaceAll(':', ' '))
  return commands.filter((command) => topic.startsWith('-') || command.startsWith(`${topic} `)).join(', ')
}

/** Writes the functions of shells, and says how a shell has them. Those of PowerShell are the plugin's. */
async function setUpCompletion(words, config, runPlugin) {
  const { completionSetUp } = await import('../src/cli/completion/set-up.ts')
  const { byPlugin, files, text } = completionSetUp(words, config)
  if (byPlugin) await runPlugin()
  for (const file of files) {
    mkdirSync(dirname(file.path), { recursive: true })
    writeFileSync(file.path, file.text)
  }
  if (text !== '') print(text)
}

/** Returns a line that begins with `help` and names a command as one of that command with `--help`, which shows its own flags first; others as they are. */
function withoutHelp(given, config) {
  const [first, ...words] = given
  return first === 'help' && config.findCommand(words.join(':')) ? [...words, '--help'] : given
}

/** Returns a message of the library, which has lines and colours, as plain lines in which the words of the command line are escaped. */
function libraryText(message, given) {
  const words = given.flatMap((word) => [word, word.split('=', 1)[0]]).filter((word) => oneLine(word) !== word)
  return printable(stripVTControlCharacters(words.reduce((text, word) => text.replaceAll(word, () => oneLine(word)), message)))
}

/** Whether a command line asks for JSON. It may be one that cannot be parsed. */
const asksForJson = (given) => given.slice(0, given.includes('--') ? given.indexOf('--') : given.length).some((word) => /^--json(=true)?$/.test(word))

/**
 * Returns the message of an error without what the library adds: the flag, which our messages name, and advice. Of an unknown command it has the nearest of
 * those that are known.
 */
function messageOf(error, given, known, bin) {
  const unknown = /^command (.*) not found$/s.exec(error?.oclif ? error.message : '')?.[1]
  if (unknown !== undefined)
    return `"${oneLine(unknown.replaceAll(':', ' ').slice(0, 100))}" is not a ${bin} command${nearCommand(given, known) || `; "${bin} help" lists them`}`
  const [message] = String(error?.message ?? error)
    .replace(/^Parsing --\S+ \n\t/, '')
    .split(/\n\nNote: |\nSee more help/)
  const near = error?.oclif?.exit === unknownCommand ? nearCommand(given, known) : ''
  return near === '' ? message : `${message.replace(/\.$/, '')}${near}`
}

/** The exit status with which the plugin for unknown commands reports one. */
const unknownCommand = 127

function nearCommand(given, known) {
  const words = given.filter((word) => !word.startsWith('-'))
  const first = new Set(known.map((command) => command.split(' ')[0]))
  return suggestion(words.slice(0, 2).join(' '), known) || suggestion(words[0] ?? '', [...known, ...first])
}
