// `npm test`: brings the tools that can be brought, says which layers are left out and why, runs the others with the
// options of .mocharc.json. Arguments are handed to mocha, for instance: npm test -- --grep 'Envoy 1.40'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import { fetchEnvoys } from './fetch-envoy.js'
import { missingForPods } from './pod-tools.js'

// The layers with the longest files first, so that no process has one left when the others are through.
const layers = ['envoy', 'red-team', 'node', 'system', 'actors', 'chaos', 'fuzz', 'package', 'unit', 'golden']
// Most files wait most of the time, for another process or for a time limit: side by side they take half as long.
const processes = Math.min(Math.max(availableParallelism(), 2), 4)
const missing = fetchEnvoys()
const left = new Map()
if (missing) for (const layer of ['envoy', 'red-team']) left.set(layer, missing)
const missingPods = missingForPods() ?? missing
if (missingPods) left.set('node', missingPods)
for (const [layer, reason] of left) console.log(`left out: ${layer}: ${reason}`)
if (left.size > 0 && process.env.CI === 'true') {
  console.log('a missing tool is a failure when CI=true')
  console.log(`0 passed, ${left.size} failed`)
  process.exit(1)
}
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
const isIn = (names) => layers.filter((layer) => names.includes(layer) && !left.has(layer)).map((layer) => `test/${layer}`)
// Actors that share the thread of a test have their errors caught by handlers of the whole process, which files that follow each other in a process of
// mocha's pool do not leave as they were: these layers run in one process, the others before them side by side.
const oneByOne = isIn(['actors', 'unit'])
const sideBySide = isIn(layers).filter((folder) => !oneByOne.includes(folder))
const sum = { passed: 0, failed: 0, skipped: 0 }
let failures = ''
for (const args of [['--parallel', '--jobs', String(processes), ...sideBySide], oneByOne]) await run([...args, ...process.argv.slice(2)])
// Thousands of lines can stand between the failures of the first run and the end.
if (failures !== '') console.log(`\nFailures:\n${failures}\n`)
console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`)
process.exit(sum.failed > 0 ? 1 : 0)

/** Runs mocha, shows its output, keeps the failures listed at the end of it, and adds up its last line; a run without that line has failed. */
async function run(args) {
  const child = spawn(process.execPath, [mocha, ...args], { stdio: ['inherit', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    process.stdout.write(text)
    output += text
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  const [, passed = 0, failed = 0, skipped = 0] = /(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/.exec(output) ?? []
  sum.passed += Number(passed)
  sum.failed += Math.max(Number(failed), code === 0 ? 0 : 1)
  sum.skipped += Number(skipped)
  if (code !== 0 && Number(failed) === 0) failures += `mocha ${args.join(' ')} ended with code ${code} and reported no failure\n`
  failures += /^ {2}\d+ failing\n([\s\S]*?)\s*\d+ passed, \d+ failed/m.exec(stripVTControlCharacters(output))?.[1] ?? ''
}
