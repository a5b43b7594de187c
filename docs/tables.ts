/** Writes the documents and manifests that are made from declarations, or with `--check` says which of them differ. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { accessManifest, revisionManifest, signerManifest } from './access.ts'
import { definitionFiles } from './crds.ts'
import { injectionManifest } from './injection.ts'
import { kindsPage } from './kinds.ts'
import { referencePage } from './reference.ts'

const definitions = 'manifests/crds'
const made = new Map([
  ['docs/kinds.md', kindsPage()],
  ['docs/reference.md', await referencePage()],
  ['manifests/access.yaml', accessManifest()],
  ['manifests/optional/revision.yaml', revisionManifest()],
  ['manifests/optional/signer.yaml', signerManifest()],
  ['manifests/injection.yaml', injectionManifest()],
  ...[...definitionFiles()].map(([name, text]) => [`${definitions}/${name}`, text] as const),
])
const root = new URL('..', import.meta.url)
const isCheck = process.argv.includes('--check')

for (const folder of [definitions, 'manifests/optional']) mkdirSync(new URL(folder, root), { recursive: true })
for (const name of readdirSync(new URL(definitions, root))) {
  const path = `${definitions}/${name}`
  if (made.has(path)) continue
  if (isCheck) wrong(`${path} is of no kind`)
  else rmSync(new URL(path, root))
}
for (const [path, text] of made) {
  const file = new URL(path, root)
  if (!isCheck) writeFileSync(file, text)
  else if (textOf(file) !== text) wrong(`${path} differs from the declarations in the code`)
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
