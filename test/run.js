// `npm test`: brings the tools that can be brought, says which layers are left out and why, runs the others with the
// options of .mocharc.json. Arguments are handed to mocha, for instance: npm test -- --grep 'Envoy 1.40'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { fetchEnvoys } from './fetch-envoy.js'
import { missingForPods } from './pod-tools.js'

// The layers with the longest files first, so that no process has one left when the others are through.
const layers = ['envoy', 'node', 'system', 'actors', 'chaos', 'fuzz', 'package', 'unit', 'golden']
// Most files wait most of the time, for another process or for a time limit: side by side they take half as long.
const processes = Math.min(Math.max(availableParallelism(), 2), 4)
const missing = fetchEnvoys()
const left = new Map()
if (missing) left.set('envoy', missing)
const missingPods = missingForPods() ?? missing
if (missingPods) left.set('node', missingPods)
for (const [layer, reason] of left) console.log(`left out: ${layer}: ${reason}`)
if (left.size > 0 && process.env.CI === 'true') {
  console.log('a missing tool is a failure when CI=true')
  console.log(`0 passed, ${left.size} failed`)
  process.exit(1)
}
const folders = layers.filter((layer) => !left.has(layer)).map((layer) => `test/${layer}`)
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
const options = ['--parallel', '--jobs', String(processes)]
const result = spawnSync(process.execPath, [mocha, ...options, ...folders, ...process.argv.slice(2)], { stdio: 'inherit' })
process.exit(result.status ?? 1)
