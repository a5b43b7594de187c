/**
 * Compares the package of this checkout with that of another one: both are installed, and each figure is taken of one and the other in
 * alternation. The difference of a figure is the median of the differences of its rounds.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Goal } from '../goals.ts'
import { withPackage } from '../package.ts'
import { type Measure, progress } from '../report.ts'
import { cpuOfRuns } from '../server.ts'
import { atRest, type Command, cpuOfCommands, cpuUntilProxy } from './agent.ts'
import { startOnce } from './start.ts'

/** The number of runs of a command in a round, because the CPU clock of exited processes has a resolution of 10 ms. */
const runs = 5

/** What the libraries of the project may cost: `times` the figure of the other package, or so much `more`. */
type Allowance = { readonly times: number } | { readonly more: number }

/** The figures, their units, and what they may be compared with those of the other package. */
const allowances = {
  'discovery: CPU until ready': { unit: 'ms', times: 1.5 },
  'discovery: resident at rest': { unit: 'MB', more: 45 },
  'discovery: version --short': { unit: 'ms', more: 150 },
  'agent: version --short': { unit: 'ms', more: 150 },
  'agent: wait': { unit: 'ms', more: 150 },
  'agent: request': { unit: 'ms', more: 150 },
  'agent: CPU until the proxy is executed': { unit: 'ms', more: 150 },
  'agent: resident at rest': { unit: 'MB', more: 20 },
  'agent: CPU a minute at rest': { unit: 'ms', more: 10 },
} as const satisfies Record<string, Allowance & { unit: Goal['unit'] }>

type Figure = keyof typeof allowances

/** An installed package with a directory for what its commands write. */
interface Installed {
  readonly command: Command
  readonly dir: string
}

/** Compares the installed package with that of the directory `checkout`, in `rounds` rounds. */
export function packages(rounds: number, checkout: string): Promise<Measure[]> {
  return withPackage((own) => withPackage((other) => compare(rounds, own, other), checkout))
}

async function compare(rounds: number, own: Command, other: Command): Promise<Measure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-packages-'))
  try {
    const installed = [own, other].map((command, index) => ({ command, dir: join(dir, String(index)) })) as [Installed, Installed]
    for (const one of installed) await warm(one)
    const seen: Record<Figure, number>[][] = []
    while (seen.length < rounds) {
      const [first, second] = seen.length % 2 === 0 ? installed : ([...installed].reverse() as [Installed, Installed])
      const round = [await measured(first), await measured(second)]
      const rest = await Promise.all([first, second].map(resting))
      const both = round.map((figures, index) => ({ ...figures, ...(rest[index] as Awaited<ReturnType<typeof resting>>) }))
      seen.push(first === installed[0] ? both : both.reverse())
      progress(`packages: round ${seen.length}: ${JSON.stringify(seen.at(-1))}`)
    }
    return (Object.keys(allowances) as Figure[]).map((figure) => row(figure, seen as [Record<Figure, number>, Record<Figure, number>][]))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Runs each command once, which fills its cache of compiled code. */
async function warm({ command, dir }: Installed): Promise<void> {
  mkdirSync(dir)
  await startOnce(command('pilot-discovery'))
  await cpuUntilProxy(command, dir)
}

/** Takes the figures of one package that need a process of their own. Milliseconds and megabytes. */
async function measured({ command, dir }: Installed) {
  const { cpu, rss } = await startOnce(command('pilot-discovery'))
  const short = (name: string) => 1000 * cpuOfRuns([command(name), 'version', '--short'], runs)
  const { wait, request } = await cpuOfCommands(command, dir, runs)
  return {
    'discovery: CPU until ready': 1000 * cpu,
    'discovery: resident at rest': rss * 1.048576,
    'discovery: version --short': short('pilot-discovery'),
    'agent: version --short': short('pilot-agent'),
    'agent: wait': 1000 * wait,
    'agent: request': 1000 * request,
    'agent: CPU until the proxy is executed': 1000 * (await cpuUntilProxy(command, dir)),
  }
}

/** Takes the figures of an agent at rest. Agents of both packages rest at the same time. */
async function resting({ command, dir }: Installed) {
  const { resident, cpu } = await atRest(command, dir)
  return { 'agent: resident at rest': resident / 1e6, 'agent: CPU a minute at rest': 1000 * cpu }
}

function row(figure: Figure, rounds: readonly (readonly [Record<Figure, number>, Record<Figure, number>])[]): Measure {
  const { unit, ...allowance } = allowances[figure]
  const own = median(rounds.map(([one]) => one[figure]))
  const other = median(rounds.map(([, one]) => one[figure]))
  const goal: Goal =
    'times' in allowance
      ? { what: 'times the other package', seen: median(rounds.map(([one, two]) => one[figure] / two[figure])), most: allowance.times, unit: 'times' }
      : { what: 'more than the other package', seen: median(rounds.map(([one, two]) => one[figure] - two[figure])), most: allowance.more, unit }
  const shown = (value: number) => `${value.toFixed(1)} ${unit}`
  return {
    scenario: figure,
    variant: '',
    cpu: 0,
    mib: 0,
    rss: 0,
    threads: {},
    figures: { 'this package': shown(own), 'the other package': shown(other) },
    goals: [goal],
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] as number
}
