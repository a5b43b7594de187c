// `npm test`: brings the tools that can be brought, says which layers are left out and why, runs the others with the
// options of .mocharc.json. Arguments are handed to mocha, for instance: npm test -- --grep 'Envoy 1.40'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fetchEnvoys } from './fetch-envoy.js'

const layers = ['unit', 'golden', 'fuzz', 'actors', 'system', 'chaos', 'package', 'envoy']
const missing = fetchEnvoys()
const left = new Map()
if (missing) left.set('envoy', missing)
for (const [layer, reason] of left) console.log(`left out: ${layer}: ${reason}`)
if (left.size > 0 && process.env.CI === 'true') {
  console.log('a missing tool is a failure when CI=true')
  console.log(`0 passed, ${left.size} failed`)
  process.exit(1)
}
const folders = layers.filter((layer) => !left.has(layer)).map((layer) => `test/${layer}`)
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
const result = spawnSync(process.execPath, [mocha, ...folders, ...process.argv.slice(2)], { stdio: 'inherit' })
process.exit(result.status ?? 1)
