/** The charts, rendered by Helm itself (test/chart/helm.js). */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { buildHelm } from '../chart/helm.js'

const charts = fileURLToPath(new URL('../../charts', import.meta.url))

/** The charts by name. */
export type Chart = 'base' | 'meshd' | 'gateway'

/** The folder of a chart. */
export const chartFolder = (chart: Chart): string => join(charts, chart)

/** What Helm said, and whether it succeeded. */
export interface HelmResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs Helm in a home of its own. `kubeconfig`: the cluster that it reaches. `input`: its standard input, as values with `--values -`. */
export function askHelm(args: readonly string[], input = '', kubeconfig = '/dev/null'): HelmResult {
  const home = mkdtempSync(join(tmpdir(), 'mesh-helm-'))
  try {
    const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: kubeconfig }
    const { status, stdout, stderr } = spawnSync(buildHelm(), args, { input, encoding: 'utf8', env, maxBuffer: 64 * 1024 * 1024 })
    return { status: status ?? -1, stdout, stderr }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** What a chart is rendered with. */
export interface Rendering {
  readonly release?: string
  readonly namespace?: string
  readonly values?: object
  /** Only what this template makes: `templates/access.yaml`. */
  readonly template?: string
}

/** Renders a chart, without a cluster. */
export function tryChart(chart: Chart, { release = chart, namespace = 'mesh-system', values = {}, template }: Rendering = {}): HelmResult {
  const only = template === undefined ? [] : ['--show-only', template]
  return askHelm(['template', release, chartFolder(chart), '--namespace', namespace, '--values', '-', ...only], JSON.stringify(values))
}

/** Renders a chart. Returns the text of its documents; throws an Error with what Helm said when it fails. */
export function renderChart(chart: Chart, rendering: Rendering = {}): string {
  const { status, stdout, stderr } = tryChart(chart, rendering)
  if (status !== 0) throw new Error(`helm template: ${stderr}`)
  return stdout
}

/** An object of a rendered chart. */
export interface RenderedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> }
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind
  readonly [field: string]: any
}

/** The objects of documents. */
export const objectsOf = (text: string): RenderedObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJSON() as RenderedObject | null)
    .filter((object) => object !== null)

/** The files of `manifests/` that the charts make, by name, as `npm run tables` writes them. */
export function manifestFiles(): Map<string, string> {
  const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: mesh-system\n'
  const made = (template: string, values: object = {}, before = '') => {
    const text = renderChart('meshd', { values, template: `templates/${template}.yaml` })
      .replaceAll(/^# Source: .*\n/gm, '')
      .replaceAll(/\n+(---\n|$)/g, '\n$1')
    return `# Made by "npm run tables" from charts/meshd, for those who do not use Helm. Do not edit.\n${before}${before === '' ? text.replace(/^---\n/, '') : text}`
  }
  return new Map([
    ['access.yaml', made('access', {}, namespace)],
    ...['discovery', 'disruption', 'injection', 'operator', 'webhooks'].map((template) => [`${template}.yaml`, made(template)] as const),
    ['optional/signer.yaml', made('signer', { signer: 'example.com/mesh' })],
    ['optional/status.yaml', made('status', { status: { enabled: true } })],
    ['optional/registration.yaml', made('registration', { registration: { enabled: true } })],
  ])
}
