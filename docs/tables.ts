/**
 * Writes the documents, and the parts of charts, that are made from declarations, and has Helm make `manifests/` from the charts where there is
 * one. With `--check` it says which of the former differ; `test/chart` does so of `manifests/`.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { accessTemplate } from './access.ts'
import { definitionFiles } from './crds.ts'
import { dashboardFile } from './dashboard.ts'
import { schemaFiles } from './editor-schemas.ts'
import { injectionFile } from './injection.ts'
import { kindsPage } from './kinds.ts'
import { referencePage } from './reference.ts'

const definitions = ['manifests/crds', 'charts/base/files/crds']
const schemas = 'schemas'
const root = new URL('..', import.meta.url)
const isCheck = process.argv.includes('--check')
const injector = '_injector.tpl'
const made = new Map([
  ['docs/kinds.md', kindsPage()],
  ['docs/reference.md', await referencePage()],
  ['examples/operating/grafana/dashboard.json', dashboardFile()],
  ['charts/meshd/templates/_access.tpl', accessTemplate()],
  ['charts/meshd/files/injection.yaml', injectionFile()],
  // Charts share no templates.
  [`charts/base/templates/${injector}`, textOf(new URL(`charts/meshd/templates/${injector}`, root)) ?? ''],
  ...[...schemaFiles()].map(([name, text]) => [`${schemas}/${name}`, text] as const),
  ...definitions.flatMap((folder) => [...definitionFiles()].map(([name, text]) => [`${folder}/${name}`, text] as const)),
])

for (const folder of [...definitions, schemas]) {
  mkdirSync(new URL(folder, root), { recursive: true })
  for (const name of readdirSync(new URL(folder, root))) {
    const path = `${folder}/${name}`
    if (made.has(path)) continue
    if (isCheck) wrong(`${path} is of no kind`)
    else rmSync(new URL(path, root))
  }
}
for (const [path, text] of made) {
  const file = new URL(path, root)
  if (!isCheck) writeFileSync(file, text)
  else if (textOf(file) !== text) wrong(`${path} differs from the declarations in the code`)
}
if (!isCheck) await writeManifests()

async function writeManifests(): Promise<void> {
  const { missingForHelm } = await import('../test/chart/helm.js')
  const missing = missingForHelm()
  if (missing !== undefined) return console.error(`manifests/ is left as it is: ${missing}`)
  const { manifestFiles } = await import('../test/harness/charts.ts')
  for (const [name, text] of manifestFiles()) writeFileSync(new URL(`manifests/${name}`, root), text)
}

function wrong(what: string): void {
  console.error(`${what}: run npm run tables`)
  process.exitCode = 1
}

function textOf(file: URL): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
