/** Writes the documents that are made from declarations, or with `--check` says which of them differ. */
import { readFileSync, writeFileSync } from 'node:fs'
import { kindsPage } from './kinds.ts'
import { referencePage } from './reference.ts'

const pages = { 'kinds.md': kindsPage(), 'reference.md': await referencePage() }

for (const [name, made] of Object.entries(pages)) {
  const file = new URL(name, import.meta.url)
  if (!process.argv.includes('--check')) writeFileSync(file, made)
  else if (readFileSync(file, 'utf8') !== made) {
    console.error(`docs/${name} differs from the declarations in the code: run npm run tables`)
    process.exitCode = 1
  }
}
