import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Config, run, settings } from '@oclif/core'

/**
 * Prints help and completions, and reports unknown commands, by the command-line library. `module` is the file in this folder that
 * exports the described commands as `commands`.
 */
export async function showHelp(given, { bin, module, description, topics = {} }) {
  settings.enableAutoTranspile = false
  const root = fileURLToPath(new URL('..', import.meta.url))
  const pjson = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  pjson.oclif = {
    bin,
    dirname: bin,
    topicSeparator: ' ',
    additionalHelpFlags: ['-h'],
    topics,
    commands: { strategy: 'explicit', target: `./bin/${module}`, identifier: 'commands' },
    plugins: ['@oclif/plugin-help', '@oclif/plugin-autocomplete'],
    description,
  }
  const config = await Config.load({ root, pjson })
  const firstWords = new Set([...config.commandIDs, ...config.topics.map(({ name }) => name)].map((id) => id.split(':')[0]))
  const [first = ''] = given
  // The library takes all words of an unknown command as its name.
  const isUnknown = first !== '' && !first.startsWith('-') && !firstWords.has(first)
  await run(isUnknown ? [first] : [...given], config)
}
