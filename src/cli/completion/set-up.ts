/** The command `autocomplete`: which functions complete lines, and how a shell has them. */
import { dirname, join } from 'node:path'
import { suggestion } from '../../model/edit-distance.ts'
import { completionFiles } from './shell-functions.ts'

/** The binary whose lines are completed, and whose user has which shell, as the library knows them. */
interface Completed {
  readonly bin: string
  readonly cacheDir: string
  readonly shell: string
}

/** The files that shells read when they start. */
const startFiles = { bash: '~/.bashrc', zsh: '~/.zshrc', fish: '~/.config/fish/config.fish' }
type OwnShell = keyof typeof startFiles
const shells = [...Object.keys(startFiles), 'powershell']

/** What is done to set completion up. */
interface SetUp {
  /** Whether the plugin of the library does it: for PowerShell, whose functions know commands and flags only. */
  readonly byPlugin: boolean
  /** The files to write, with the functions of the other shells. */
  readonly files: readonly { readonly path: string; readonly text: string }[]
  /** What is printed; empty: nothing. */
  readonly text: string
}

/**
 * Returns what the words after `autocomplete` ask for: functions and how to switch those of a shell on, or with `script` what that shell has to read.
 * Throws an Error for a shell that is not known.
 */
export function completionSetUp(words: readonly string[], { bin, cacheDir, shell: ofUser }: Completed): SetUp {
  if (words.some((word) => word === '--help' || word === '-h')) return { byPlugin: false, files: [], text: helpOf(bin) }
  const isScript = words[0] === 'script'
  const shell = shellOf(words.slice(isScript ? 1 : 0), ofUser)
  const files = Object.values(completionFiles).map(({ path, text }) => ({ path: join(cacheDir, path(bin)), text: text(bin) }))
  if (shell === 'powershell') return { byPlugin: true, files, text: '' }
  const file = join(cacheDir, completionFiles[shell].path(bin))
  return { byPlugin: false, files, text: isScript ? scripts[shell](file) : switchedOn(bin, shell, file) }
}

/** Returns the shell that the words name, or else that of the user. */
function shellOf(words: readonly string[], ofUser: string): OwnShell | 'powershell' {
  const asked = words.find((word) => !word.startsWith('-'))
  const shell = asked ?? ofUser
  if (shells.includes(shell)) return shell as OwnShell
  const known = `completion is for ${shells.slice(0, -1).join(', ')} and ${shells.at(-1)}`
  if (asked === undefined) throw new Error(`${known}; SHELL names ${shell === '' ? 'none' : JSON.stringify(shell)}: name one`)
  throw new Error(`${JSON.stringify(asked)} is not a shell that is known: ${known}${suggestion(asked, shells)}`)
}

/** What a shell reads to have the functions. */
const scripts: Readonly<Record<OwnShell, (file: string) => string>> = {
  bash: (file) => `source ${quoted(file)}`,
  zsh: (file) => `fpath=(${quoted(dirname(file))} $fpath)\nautoload -Uz compinit && compinit`,
  fish: (file) => `source ${quoted(file)}`,
}

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`

const switchedOn = (bin: string, shell: OwnShell, file: string): string => `Completion of ${bin} by ${shell} is in ${file}. Switch it on:

  ${bin} autocomplete script ${shell} >> ${startFiles[shell]}`

const helpOf = (bin: string): string => `Set up completion of commands, flags and values in a shell

USAGE
  $ ${bin} autocomplete [SHELL]
  $ ${bin} autocomplete script [SHELL]

ARGUMENTS
  [SHELL]  ${shells.join(', ')}; that of the user (SHELL) when not given

DESCRIPTION
  Writes the functions into the cache directory of the user, and says how later shells have them. With "script" prints what a shell reads to have them.

EXAMPLES
  $ ${bin} autocomplete fish

  $ eval "$(${bin} autocomplete script bash)"`
