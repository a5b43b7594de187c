/** Runs the blocks of a page as a reader would, and compares what they print. */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePorts } from '../../bench/ports.ts'
import { Output } from './output.ts'
import { until } from './until.ts'

/** A command of a page and what the page says it prints; a line `...` stands for any lines, and at the end of a line for the rest of it. */
interface TourStep {
  readonly command: string
  readonly output: string
}

/**
 * Returns the commands in the blocks `console` of a part of a page. A line that ends with a backslash goes on in the next one, a document of the shell
 * (`<<'YAML'`) until its end.
 */
const stepsOf = (page: string): TourStep[] =>
  [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .replaceAll('\\\n', '')
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [, command = '', output = ''] = /^(.*<<'(\w+)'\n[\s\S]*?\n\2|.*)\n([\s\S]*)$/.exec(step)?.filter((_, index) => index !== 2) ?? []
        return { command, output }
      }),
  )

/** Returns the pattern of an output. */
const patternOf = (output: string): RegExp =>
  new RegExp(
    `^${output
      .split(/^\.\.\.\n/m)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\\\.\\\.\\\.$/gm, '.*'))
      .join('[\\s\\S]*?')}$`,
  )

/**
 * Runs a command in a shell until it prints what the page says: a change is in use a moment later. Returns the group of its processes where it goes on
 * in the background.
 */
async function runStep({ command, output }: TourStep, cwd: string, env: NodeJS.ProcessEnv): Promise<number | undefined> {
  const pattern = patternOf(output)
  let printed = ''
  let group: number | undefined
  const works = until(`${command} to print ${output}`, async () => {
    // In the order in which a terminal shows it.
    const shell = spawn('sh', ['-c', `exec 2>&1; ${command}`], { cwd, env, detached: true })
    group = shell.pid
    const said = new Output()
    said.follow(shell)
    printed = await said.whole()
    return pattern.test(printed)
  })
  await works.catch(() => expect(printed, command).to.match(pattern))
  return command.endsWith('&') ? group : undefined
}

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const examples = fileURLToPath(new URL('../../examples', import.meta.url))

/** Where the quickstart has an address, by how far its port is from `--first-port`; the others are of commands of pages. */
const places: Readonly<Record<string, number>> = { 8000: 0, 8080: 3, 9101: 35, 9102: 36, 9110: 37, 9113: 38 }

/** What runs the blocks of a page: the folder, the script of the command, an Envoy, and the Node (that of this process without one). */
interface Tour {
  readonly folder: string
  readonly script: string
  readonly envoy: string
  readonly runtime?: string
}

/**
 * Runs the blocks of a page: the first command in one terminal, until it has printed what the page says, the others in a second one. Other ports take
 * the place of those of the page.
 */
export async function takeTour(page: string, { folder, script, envoy, runtime = process.execPath }: Tour): Promise<void> {
  const first = await freePorts(40)
  const placed = page.replaceAll(
    /(:|\b)(8000|8080|9101|9102|9110|9113)\b/g,
    (_, before: string, port: string) => `${before}${first + (places[port] ?? 0)}`,
  )
  const [start, ...others] = stepsOf(placed)
  if (!start) throw new Error('the page has no commands')
  // Each step has a shell of its own here; in that of a reader the next steps would be in another folder.
  expect(
    others.filter(({ command }) => /^cd \S+ /.test(command)).map(({ command }) => command),
    'steps that leave the folder',
  ).to.deep.equal([])
  // `npx` finds the command in a clone and in an installed package; here it is given.
  const programs = join(folder, 'programs')
  mkdirSync(programs)
  writeFileSync(join(programs, 'npx'), `#!/bin/sh\nshift\nexec '${runtime}' '${script}' "$@"\n`, { mode: 0o755 })
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, ENVOY_BIN: envoy, EXAMPLES: examples }
  const terminal = spawn('sh', ['-c', `exec ${start.command} --first-port ${first}`], { cwd: folder, env, detached: true })
  const output = new Output()
  output.follow(terminal)
  const ended = new Promise((resolve) => terminal.once('exit', (code) => resolve(code)))
  const background: number[] = []
  try {
    await output.says(start.output.replace('...\n', ''))
    let cwd = folder
    for (const step of others) {
      const [, entered] = /^cd (\S+)$/.exec(step.command) ?? []
      if (entered !== undefined) cwd = join(cwd, entered)
      const group = entered === undefined ? await runStep(step, cwd, env) : undefined
      if (group !== undefined) background.push(group)
    }
  } finally {
    for (const group of background) process.kill(-group, 'SIGTERM')
    terminal.kill('SIGINT')
    await ended
  }
  expect(await ended).to.equal(0)
}

/** The tour of README. */
export const readmeTour = (): string => readme.slice(readme.indexOf('## Ten minutes'), readme.indexOf('## In a cluster'))
