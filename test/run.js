// `npm test`: brings the tools that can be brought, says which layers are left out and why, runs the others with the
// options of .mocharc.json. Arguments are handed to mocha, for instance: npm test -- --grep 'Envoy 1.40'
import { spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { buildCommands } from './commands.js'
import { fetchEnvoys } from './fetch-envoy.js'
import { goPrograms } from './go-programs.js'
import { missingForPods } from './pod-tools.js'
import { batchesOf, idleFor, inSlots } from './schedule.js'

const layers = [
  'envoy',
  'orchestrator',
  'red-team',
  'node',
  'system',
  'actors',
  'chaos',
  'fuzz',
  'package',
  'unit',
  'golden',
  'template',
  'chart',
  'monitoring',
]
/**
 * Two processes more than there are cores, since files wait more than half of the time (3,300 s of CPU in 9,300 s of processes); and more while the cores are
 * idle all the same: the long files, which come first, wait for time limits most of their time. A process that has just started loads its modules, so the next one
 * is not begun before that shows. What counts as idle is what the cores stay idle in the end: with one process more and 15 % they were so for a quarter of the run.
 */
const processes = Math.min(availableParallelism() + 2, 5)
const more = { most: Math.min(4 * availableParallelism(), 12), everyMs: 3000, hasRoom: idleFor(0.1, cpus) }
/** How many times longer than usual tests may take: those of `test/long.js` have more to do. */
const patience = Number(process.env.TEST_PATIENCE ?? 1)
/** The time after which a process of mocha is ended: no batch takes so long, and mocha cannot end a file that blocks its thread. */
const longestMs = 900_000 * patience
/**
 * The number of batches with failures that are run again, alone: so few may have failed because of what ran beside them. What fails then too is a failure, and
 * what did not is told apart, because faults that show only under load begin like this.
 */
const mostAgain = 6
const timesFile = new URL('./times.json', import.meta.url)
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')

const missing = await fetchEnvoys()
const left = new Map()
if (missing) for (const layer of ['envoy', 'red-team']) left.set(layer, missing)
const missingPods = missingForPods() ?? missing
if (missingPods) left.set('node', missingPods)
for (const { layer, missing } of goPrograms) {
  const reason = missing()
  if (reason) left.set(layer, reason)
}
for (const [layer, reason] of left) console.log(`left out: ${layer}: ${reason}`)
if (left.size > 0 && process.env.CI === 'true') {
  console.log('a missing tool is a failure when CI=true')
  console.log(`0 passed, ${left.size} failed`)
  process.exit(1)
}

let failures = ''
let failuresBeside = ''
let failed = 0
// Before the tests, since a build takes all cores. What it cannot build costs its layer, and no other.
for (const { layer, what, build } of goPrograms) {
  if (left.has(layer)) continue
  try {
    build()
  } catch (error) {
    left.set(layer, `${what} cannot be built`)
    failures += `\n${what} cannot be built: ${error.message}\n`
    failed++
  }
}

const filesOf = (layer) => globSync(`test/${layer}/**/*.test.ts`).sort()
const batches = batchesOf(
  layers.filter((layer) => !left.has(layer)).map((layer) => ({ layer, files: filesOf(layer) })),
  JSON.parse(readFileSync(timesFile, 'utf8')),
)
// Processes load the same modules: their code is compiled once, into the folder that the commands use too.
const env = { ...process.env, TEST_COMMANDS: buildCommands(), NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') }
const sum = { passed: 0, failed, skipped: 0 }
const fileTimes = {}
const layerTimes = new Map()
let cpuBefore = 0
const started = performance.now()
newCpu()
let running = 0
let most = 0
const again = []
await inSlots(
  processes,
  batches,
  async ({ layer, files }) => {
    most = Math.max(most, ++running)
    const { output, code, seconds, cpu } = await run(files)
    running--
    process.stdout.write(output)
    const outcome = outcomeOf(files, output, code)
    if (outcome.failed > 0) again.push({ files, outcome })
    else add(outcome)
    const known = layerTimes.get(layer) ?? { files: 0, seconds: 0, cpu: 0 }
    layerTimes.set(layer, { files: known.files + files.length, seconds: known.seconds + seconds, cpu: known.cpu + cpu })
  },
  more,
)
for (const { files, outcome } of again) {
  if (again.length > mostAgain) {
    add(outcome)
    continue
  }
  console.log(`\nAgain, alone: ${files.join(' ')}`)
  const { output, code } = await run(files)
  process.stdout.write(output)
  const second = outcomeOf(files, output, code)
  if (second.failed === 0) failuresBeside += outcome.failures
  add(second)
}
tellTimes()
if (failuresBeside !== '') console.log(`\nFailures beside other tests only, whose causes are to be found:\n${failuresBeside}\n`)
// Thousands of lines can stand between the failures of the first run and the end.
if (failures !== '') console.log(`\nFailures:\n${failures}\n`)
console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`)
process.exit(sum.failed > 0 ? 1 : 0)

/** Runs files in a process of mocha. */
async function run(files) {
  const start = performance.now()
  const timeout = patience > 1 ? ['--timeout', String(longestMs)] : []
  const child = spawn(process.execPath, [mocha, ...files, ...timeout, ...process.argv.slice(2)], { stdio: ['ignore', 'pipe', 'pipe'], env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const code = await new Promise((resolve) => {
    const overdue = setTimeout(() => {
      child.kill('SIGKILL')
      resolve(`nothing within ${longestMs / 1000} s`)
    }, longestMs)
    child.on('close', (code) => {
      clearTimeout(overdue)
      resolve(code)
    })
  })
  return { output, code, seconds: (performance.now() - start) / 1000, cpu: newCpu() }
}

/** Seconds of CPU of the processes that ended since the last call, with those that they had started. Zero where the system does not say. */
function newCpu() {
  const stat = existsSync('/proc/self/stat') ? readFileSync('/proc/self/stat', 'utf8') : ''
  // After the name in brackets: the fields 16 and 17, in hundredths of a second.
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(13, 15)
  const whole = (Number(user) + Number(system)) / 100
  const since = whole - cpuBefore
  cpuBefore = whole
  return since
}

/** Reads the last line of a process, and the failures listed before it. A process without that line has failed. Keeps the times of its files. */
function outcomeOf(files, output, code) {
  const [, passed = 0, failed = 0, skipped = 0] = [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1) ?? []
  for (const [, seconds, file] of output.matchAll(/^([\d.]+) s of (\S+)$/gm)) fileTimes[file] = Number(seconds)
  const ended = code !== 0 && Number(failed) === 0 ? `mocha ${files.join(' ')} ended with ${code} and reported no failure\n` : ''
  const listed = /^ {2}\d+ failing\n([\s\S]*?)\s*\d+ passed, \d+ failed/m.exec(stripVTControlCharacters(output))?.[1] ?? ''
  return { passed: Number(passed), failed: Math.max(Number(failed), code === 0 ? 0 : 1), skipped: Number(skipped), failures: ended + listed }
}

/** Adds an outcome to those of the run. */
function add(outcome) {
  for (const count of ['passed', 'failed', 'skipped']) sum[count] += outcome[count]
  failures += outcome.failures
}

/** Prints the time of each layer and the longest files. With `UPDATE_TEST_TIMES` the times decide the order of later runs. */
function tellTimes() {
  console.log(`\n${Math.round((performance.now() - started) / 1000)} s in ${processes} to ${most} processes at a time`)
  for (const [layer, { files, seconds, cpu }] of [...layerTimes].sort(([, one], [, other]) => other.seconds - one.seconds))
    console.log(`  ${String(Math.round(seconds)).padStart(5)} s, ${String(Math.round(cpu)).padStart(4)} s of CPU  ${layer} (${files} files)`)
  const longest = Object.entries(fileTimes).sort(([, one], [, other]) => other - one)
  for (const [file, seconds] of longest.slice(0, 12)) console.log(`  ${String(Math.round(seconds)).padStart(5)} s  ${file}`)
  if (!process.env.UPDATE_TEST_TIMES) return
  const lasting = longest.filter(([, seconds]) => seconds >= 2).map(([file, seconds]) => [file, Math.round(seconds)])
  writeFileSync(timesFile, `${JSON.stringify(Object.fromEntries(lasting.sort()), null, 2)}\n`)
}
