/** The flags of `pilot-discovery config`, and what it prints: the settings of a server. */
import type { FlagInput } from '@oclif/core/interfaces'
import { discoveryVariables } from '../config/features.ts'
import { misspeltVariables } from '../config/misspelt-variables.ts'
import { type DeclaredVariable, readVariable } from '../config/variable.ts'
import { canonicalEnvironment } from '../names/mesh-names.ts'
import { discoveryFlags } from './discovery-flags.ts'
import type { FlagFault } from './discovery-options.ts'
import { toggle, underHeading } from './flags.ts'
import { printAnswer } from './folding.ts'
import { isColoured, print, printJson } from './print.ts'
import { serverFlags } from './server-flags.ts'
import { type Cell, table } from './table.ts'

/** The flags that are not those of a server. */
const ownFlags = {
  running: toggle({ description: 'of the server that runs, which is asked over its admin socket, at --address or in a cluster' }),
  changed: toggle({ description: 'only what is not at its default' }),
  ...serverFlags,
}

/** The flags. */
export const configFlags = { ...ownFlags, ...underHeading('SERVER', discoveryFlags) }

/** Throws an Error that names a flag of a server, which is not started, or of one that is not asked. */
export function checkConfigLine(given: ReadonlyMap<string, string>, isRunning: boolean): void {
  const odd = Object.keys(isRunning ? discoveryFlags : serverFlags).find((name) => given.has(name) && name !== 'json')
  if (odd !== undefined) throw new Error(isRunning ? `--${odd}: a server that runs has its own` : `--${odd} needs --running`)
}

type Environment = Readonly<Record<string, string | undefined>>

/** A flag or a variable, and what it is set to. */
export interface Setting {
  /** `--grpcAddr`, or the name of a variable. */
  readonly name: string
  /** Undefined: it is a secret. */
  readonly value: string | undefined
  readonly default: string
  readonly origin: 'flag' | 'environment' | 'default'
  /** Why the value cannot be used or has no effect; empty if it counts. */
  readonly problem: string
  readonly isUsable: boolean
}

/** Variables that count where a flag is not given. */
const variableOfFlag: Readonly<Record<string, string>> = { namespace: 'POD_NAMESPACE', clusterID: 'CLUSTER_ID' }

/** Resolves with what flags are set to. `given` has the texts of those that were given. */
async function flagSettings(flags: FlagInput, { given, faults }: Pick<ServerLine, 'given' | 'faults'>, environment: Environment): Promise<Setting[]> {
  const canonical = canonicalEnvironment(environment)
  const settings = Object.entries(flags).map(async ([name, flag]): Promise<Setting> => {
    const standard = await defaultText(flag)
    const inherited = canonical[variableOfFlag[name] ?? ''] || undefined
    const origin = given.has(name) ? 'flag' : inherited === undefined ? 'default' : 'environment'
    const problem = faults.find((fault) => fault.flag === name)?.reason ?? ''
    return { name: `--${name}`, value: given.get(name) ?? inherited ?? standard, default: standard, origin, problem, isUsable: problem === '' }
  })
  return Promise.all(settings)
}

/** Resolves with the default of a flag in its own notation: help has that of a duration. */
async function defaultText(flag: FlagInput[string]): Promise<string> {
  if (flag.type === 'boolean') return 'false'
  const { default: standard, defaultHelp } = flag as { default?: unknown; defaultHelp?: () => Promise<string> }
  return defaultHelp ? defaultHelp() : [standard ?? ''].flat().join(',')
}

/** Returns what the variables are set to. */
function variableSettings(environment: Environment): Setting[] {
  const canonical = canonicalEnvironment(environment)
  return Object.entries(discoveryVariables).map(([name, variable]) => variableSetting(name, variable, canonical[name]))
}

function variableSetting(name: string, variable: DeclaredVariable, set: string | undefined): Setting {
  const standard = String(variable.default)
  const isSet = set !== undefined && (set !== '' || 'isEmptyGiven' in variable)
  const read = isSet ? readVariable(variable, set) : { value: standard }
  const refused = 'expected' in read ? `expected ${read.expected}` : undefined
  const idle = isSet && variable.without !== undefined ? `has no effect: ${variable.without}` : ''
  const value = isSet ? (variable.isSecret ? undefined : set) : standard
  const origin = isSet ? 'environment' : 'default'
  return { name, value, default: standard, origin, problem: refused ?? idle, isUsable: refused === undefined }
}

/** What flags and variables are set to, and which variables look misspelt. */
export interface Settings {
  readonly settings: readonly Setting[]
  readonly misspelt: readonly { readonly name: string; readonly nearest: string }[]
}

/** The line of a server: the texts of the flags that were given, what is wrong with values, and the flags of every command. */
export interface ServerLine {
  readonly given: ReadonlyMap<string, string>
  readonly faults: readonly FlagFault[]
  readonly logging: FlagInput
}

/** Resolves with the settings of a line. */
export async function settingsOf(line: ServerLine, environment: Environment): Promise<Settings> {
  const flags = await flagSettings({ ...discoveryFlags, ...line.logging }, line, environment)
  return { settings: [...flags, ...variableSettings(environment)], misspelt: misspeltVariables(environment) }
}

/** Prints settings. */
export function printSettings({ settings: all, misspelt }: Settings, flags: { readonly changed: boolean; readonly json: boolean }): void {
  const settings = flags.changed ? all.filter(({ origin }) => origin !== 'default') : all
  if (flags.json) return printJson({ settings: settings.map(({ value, ...rest }) => ({ ...rest, value: value ?? null })), misspelt })
  const rows = settings.map(({ name, value, default: standard, origin, problem, isUsable }): Cell[] => [
    ...[name, value ?? '(not shown)', standard, origin],
    isUsable ? problem : { text: problem, means: 'bad' },
  ])
  print(
    rows.length === 0
      ? 'All flags and variables are at their defaults.'
      : table(['NAME', 'VALUE', 'DEFAULT', 'ORIGIN', 'PROBLEM'], rows, isColoured()),
  )
  for (const { name, nearest: near } of misspelt) printAnswer(`${JSON.stringify(name)} is not known; did you mean ${near}?`)
}
