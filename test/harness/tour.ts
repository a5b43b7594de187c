/** Runs the blocks of a page as a reader would, and compares what they print. */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePorts } from '../../bench/ports.ts'
import { Output } from './output.ts'
import { until } from './until.ts'

/** A command of a page and what the page says it prints; a line `...` stands for any lines. */
interface TourStep {
  readonly command: string
  readonly output: string
}

/** Returns the commands in the blocks `console` of a part of a page. A line that ends with a backslash goes on in the next one. */
const stepsOf = (page: string): TourStep[] =>
  [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .replaceAll('\\\n', '')
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...lines] = step.split('\n')
        return { command, output: lines.join('\n') }
      }),
  )

/** Returns the pattern of an output. */
const patternOf = (output: string): RegExp =>
  new RegExp(
    `^${output
      .split(/^\.\.\.\n/m)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[\\s\\S]*?')}$`,
  )

/** Runs a command in a shell until it prints what the page says: a change is in use a moment later. */
async function runStep({ command, output }: TourStep, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const pattern = patternOf(output)
  let printed = ''
  const works = until(`${command} to print ${output}`, async () => {
    const shell = spawn('sh', ['-c', command], { cwd, env })
    const said = new Output()
    said.follow(shell)
    printed = await said.whole()
    return pattern.test(printed)
  })
  await works.catch(() => expect(printed, command).to.match(pattern))
}

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

/**
 * Takes the tour of README in a folder, with the command of a script and an Envoy: the first command in one terminal, until it has printed what README says, the others in
 * a second one. Other ports take the place of those of README.
 */
export async function takeTour(folder: string, script: string, envoy: string): Promise<void> {
  const first = await freePorts(40)
  const tour = readme.slice(readme.indexOf('## Ten minutes'), readme.indexOf('## In a cluster'))
  const [start, ...others] = stepsOf(tour.replaceAll(':8000', `:${first}`).replaceAll(':8080', `:${first + 3}`))
  if (!start) throw new Error('README has no tour')
  // `npx` finds the command in a clone and in an installed package; here it is given.
  const programs = join(folder, 'programs')
  mkdirSync(programs)
  writeFileSync(join(programs, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${script}' "$@"\n`, { mode: 0o755 })
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, ENVOY_BIN: envoy }
  const terminal = spawn('sh', ['-c', `exec ${start.command} --first-port ${first}`], { cwd: folder, env, detached: true })
  const output = new Output()
  output.follow(terminal)
  const ended = new Promise((resolve) => terminal.once('exit', (code) => resolve(code)))
  try {
    await output.says(start.output.replace('...\n', ''))
    for (const step of others) await runStep(step, folder, env)
  } finally {
    terminal.kill('SIGINT')
    await ended
  }
  expect(await ended).to.equal(0)
}
