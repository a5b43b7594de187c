/** Asks Go what it makes of templates, patches and YAML (`test/template/oracle/`), and compares our results with its. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { newKey } from '../../actors/discovery/webhooks/template-library.ts'
import { sprigFunctions } from '../../src/template/sprig/sprig.ts'
import { parseTemplate } from '../../src/template/template.ts'
import { fromGoJson, fromJson } from '../../src/template/values.ts'
import { yamlFunctions } from '../../src/template/yaml.ts'
import { buildOracle } from './oracle.js'

/** A template with its data. With `floats` all numbers of the data are `float64`, otherwise whole ones are `int`. */
export interface TemplateCase {
  readonly template: string
  readonly data: unknown
  readonly floats?: boolean
}

/** A pod with a patch. */
export interface MergeCase {
  readonly pod: unknown
  readonly patch: unknown
}

/** A document of YAML. */
export interface YamlCase {
  readonly yaml: string
}

/** What Go reads of certificates, keys and hashes of passwords. */
export interface SecretCase {
  /** A certificate in PEM, and the one that its signature is checked with. */
  readonly certificate?: string
  readonly authority?: string
  /** A private key in PEM. */
  readonly privateKey?: string
  /** A password with its hash by bcrypt. */
  readonly password?: string
  readonly hash?: string
}

/** What Go answers: the output, the merged pod, the merge keys, the names of sprig's functions, the JSON, what it has read, or an error. */
export interface Answer {
  readonly output: string
  readonly keys?: readonly string[]
  readonly merged?: unknown
  readonly json?: string
  readonly read?: Readonly<Record<string, unknown>>
  readonly error?: string
}

/** Asks Go about all cases at once. */
export function askGo(
  cases: readonly (
    | TemplateCase
    | MergeCase
    | YamlCase
    | SecretCase
    | { readonly keys: true }
    | { readonly specFields: true }
    | { readonly names: true }
  )[],
): Answer[] {
  const { stdout, status, stderr } = spawnSync(buildOracle(), [], {
    input: cases.map((each) => `${JSON.stringify(each)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: { ...process.env, TZ: 'UTC' },
  })
  if (status !== 0) throw new Error(`the program that asks Go ended with ${status}: ${stderr.slice(-2000)}`)
  const answers = stdout.trimEnd().split('\n')
  if (answers.length !== cases.length) throw new Error(`Go answered ${answers.length} of ${cases.length} cases`)
  return answers.map((line) => JSON.parse(line) as Answer)
}

const functions = new Map([
  ...sprigFunctions({ clock: () => BigInt(Date.now()) * 1_000_000n, random: (count) => randomBytes(count), newKey }),
  ...yamlFunctions,
])

/** Enough for any slow function. */
const bounds = { slow: 1_000_000 }

/** Renders with our engine. */
export function renderOurs({ template, data, floats }: TemplateCase): { output: string; error?: string } {
  try {
    return { output: parseTemplate('t', template, functions).render(floats ? fromGoJson(data) : fromJson(data), { bounds }) }
  } catch (error) {
    return { output: '', error: (error as Error).stack ?? '' }
  }
}

/** Returns how our result differs from that of Go; undefined when it does not. Errors are compared by their presence. */
export function difference(given: TemplateCase, go: Answer): string | undefined {
  const ours = renderOurs(given)
  if ((ours.error === undefined) === (go.error === undefined) && ours.output === go.output) return undefined
  const shown = ({ output, error }: { output: string; error?: string }) =>
    error === undefined ? JSON.stringify(output) : `error ${error.split('\n')[0]}`
  return `${given.template}\n  Go:   ${shown(go)}\n  ours: ${shown(ours)}`
}
