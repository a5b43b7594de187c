#!/usr/bin/env node
import { existsSync } from 'node:fs'
import * as modules from 'node:module'
import { onPinnedRuntime, setLibraryVariables } from './runtime.js'

if (await onPinnedRuntime(import.meta.url)) {
  modules.enableCompileCache?.()
  setLibraryVariables()
  // A clone runs from source; an installed package contains built code only.
  const source = new URL('./discovery-main.js', import.meta.url)
  const { main } = await import(existsSync(source) ? source.href : new URL('../dist/bin/discovery-main.js', import.meta.url).href)
  await main(process.argv.slice(2))
}
