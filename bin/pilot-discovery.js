#!/usr/bin/env node
import * as modules from 'node:module'
import { onPinnedRuntime } from './runtime.js'

if (await onPinnedRuntime(import.meta.url)) {
  modules.enableCompileCache?.()
  await (await import('./discovery-main.js')).main(process.argv.slice(2))
}
