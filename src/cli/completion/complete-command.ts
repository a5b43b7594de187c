/** The commands `complete`, by which shells complete lines. */
import type { Config } from '@oclif/core/interfaces'
import { levels } from '../../logging/levels.ts'
import { print } from '../print.ts'
import { knownValues } from './fixed-values.ts'
import { type Candidate, type CompletedCommand, candidateLines, soughtIn } from './typed-line.ts'

/** Looks for the values of a flag or argument ({@link Sought.value}); the flags of the line say where. */
export type FindValues = (value: string, given: Readonly<Record<string, string>>) => Promise<readonly Candidate[]>

/**
 * Prints what the last of the words after `--` may be, a line each: the word, a tab, and what it is. Prints nothing where files are meant, and where a
 * server that is asked gives no answer: a person who types is told of no error.
 */
export async function printCompletions(argv: readonly string[], config: Config, scopes: readonly string[], find: FindValues): Promise<void> {
  const words = argv.slice(argv.indexOf('--') + 1)
  const typed = words.at(-1) ?? ''
  const topics = Object.fromEntries(config.topics.map(({ name, description = '' }) => [name, description]))
  const { candidates, value, kept, given } = soughtIn(words, [...(config.commands as unknown as CompletedCommand[]), ofPlugin], topics)
  const values = value === undefined ? [] : (knownValues(value, typed.slice(kept.length), { scopes, levels }) ?? (await found(find, value, given)))
  const lines = candidateLines([...candidates, ...values.map(({ word, about }) => ({ word: kept + word, about }))], typed)
  if (lines.length > 0) print(lines.join('\n'))
}

/** The command of the plugin that sets completion up, which is not loaded for it. */
const ofPlugin: CompletedCommand = { id: 'autocomplete', summary: 'Set up completion of a shell', args: { shell: {} }, flags: {} }

async function found(find: FindValues, value: string, given: Readonly<Record<string, string>>): Promise<readonly Candidate[]> {
  try {
    return await find(value, given)
  } catch {
    return []
  }
}
