/**
 * What a fleet of replicas costs that is larger than this machine: one replica is simulated (bench/simulated-replica.ts) with its share of the
 * proxies. What the simulation leaves out is calibrated with measured runs of the real service (bench/fleet-model.ts), and the result is held
 * against further measured runs with other numbers of proxies.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import {
  bytesOf,
  type Constants,
  calibrate,
  cpuOf,
  deviation,
  lastMs,
  type MemoryLine,
  memoryLine,
  memoryOf,
  pureCpu,
  responsesOf,
  type Work,
} from '../fleet-model.ts'
import type { FleetCommand, FleetReport } from '../fleet-process.ts'
import { type FleetKind, fleetKinds, leastRun, type RawRun, type Real, runFleet, type Warming } from '../fleet-run.ts'
import { simulationGoal } from '../goals.ts'
import { median, once } from '../load.ts'
import { type Measure, progress } from '../report.ts'

/** The settings of the set. */
export interface FleetOptions {
  readonly services: number
  readonly writers: number
  readonly rounds: number
  /** How often each run of the real service is repeated. */
  readonly runs: number
  /** Numbers of proxies of the calibration, the least and the most of it. */
  readonly calibrated: readonly number[]
  /** Numbers of proxies of the runs that the simulation is held against. */
  readonly checked: readonly number[]
  /** Numbers of proxies of the simulated fleets, and of each of their replicas. */
  readonly fleets: readonly number[]
  readonly each: readonly number[]
}

const namespaces = 10
const warming: Warming = { staying: namespaces, leaving: 190, rounds: 6 }
/** Services of the mesh in which connections are sent little. */
const few = 10

/** A number of proxies: the real service with them, and the simulation. */
interface Sized {
  readonly services: number
  readonly proxies: number
  readonly real: Real
  readonly simulation: FleetReport
}

/** What a replica costs besides the simulated code. */
interface Model {
  readonly constants: Constants
  readonly memory: MemoryLine
  /** CPU seconds that the first proxies of a process cost more than later ones. */
  readonly cold: number
}

/** Runs the set. */
export async function fleet(options: FleetOptions): Promise<Measure[]> {
  const { services, calibrated, checked } = options
  const most = Math.max(...calibrated)
  const sizes = [{ services: few, proxies: most }, ...[...calibrated, ...checked].map((proxies) => ({ services, proxies }))]
  // Each size is run once before one is run again: what else the machine does is the same for all.
  const runs: RawRun[][] = sizes.map(() => [])
  const simulations: FleetReport[][] = sizes.map(() => [])
  for (let run = 1; run <= options.runs; run++)
    for (const [index, size] of sizes.entries()) {
      progress(`fleet: run ${run} of the real service with ${size.services} services and ${size.proxies} proxies`)
      const kinds = size.services === few ? [] : fleetKinds
      const real = await runFleet({ ...size, namespaces, writers: options.writers, warming, rounds: options.rounds * 2, kinds })
      progress(`fleet: ${JSON.stringify(leastRun([real]))}`)
      runs[index]?.push(real)
      simulations[index]?.push(await simulated(options, size))
    }
  const sized = sizes.map(
    (size, index): Sized => ({ ...size, real: leastRun(runs[index] as RawRun[]), simulation: leastSimulation(simulations[index] as FleetReport[]) }),
  )
  const model = modelOf(sized.slice(0, 1 + calibrated.length))
  const measures = [constantsOf(model, sized.slice(0, 1 + calibrated.length))]
  for (const one of sized) measures.push(...compared(one, model, checked.includes(one.proxies)))
  for (const each of options.each) measures.push(...(await planned(options, each, model)))
  return measures
}

/** Simulates a replica. */
async function simulated({ services, writers, rounds }: FleetOptions, command: Partial<FleetCommand> & { proxies: number }): Promise<FleetReport> {
  progress(`fleet: simulating ${command.proxies} proxies`)
  const child = fork(fileURLToPath(new URL('../fleet-process.ts', import.meta.url)), { execArgv: ['--expose-gc'] })
  try {
    const report = once<FleetReport>(child, 'simulated')
    child.send({ services, namespaces, writers, warming, rounds: rounds * 2, joining: [], isWhole: false, ...command } satisfies FleetCommand)
    return await report
  } finally {
    child.removeAllListeners('exit')
    child.kill()
  }
}

/** The least of each work of several simulations of the same, for the same reason as in measured runs. */
function leastSimulation(reports: readonly FleetReport[]): FleetReport {
  const least = (works: readonly Work[]) => works.reduce((one, other) => (pureCpu(other) < pureCpu(one) ? other : one))
  const changed = (kind: FleetKind) => [least(reports.map((report) => middle(report.changes[kind])))]
  return {
    ...(reports[0] as FleetReport),
    ...{ first: least(reports.map(({ first }) => first)), connect: least(reports.map(({ connect }) => connect)) },
    changes: {
      'endpoint change': changed('endpoint change'),
      'route change': changed('route change'),
      'nothing visible': changed('nothing visible'),
    },
  }
}

/** The round whose simulated code cost as much as the median of them. */
const middle = (rounds: readonly Work[]): Work => {
  const cost = median(rounds.map(pureCpu))
  return rounds.find((work) => pureCpu(work) === cost) as Work
}

/** Fits the model to the sizes of the calibration. */
function modelOf(sized: readonly Sized[]): Model {
  const runs = sized.flatMap(({ real, simulation }) => [
    { cpu: real.connect, work: simulation.connect },
    ...Object.entries(real.changes).map(([kind, cpu]) => ({ cpu, work: middle(simulation.changes[kind as FleetKind]) })),
  ])
  const constants = calibrate(runs)
  const whole = sized.filter(({ services }) => services !== few).sort((one, other) => one.proxies - other.proxies)
  const [least, most] = [whole[0] as Sized, whole.at(-1) as Sized]
  const point = ({ proxies, real: { mib } }: Sized) => ({ proxies, mib })
  const memory = memoryLine(point(least), point(most), most.simulation.kib)
  const cold = median(whole.map(({ real, simulation }) => Math.max(0, real.first - cpuOf(simulation.first, constants))))
  return { constants, memory, cold }
}

const bare = { variant: 'fleet', cpu: Number.NaN, mib: 0, rss: Number.NaN, threads: {} }
const micro = (seconds: number) => (seconds * 1e6).toFixed(1)

/** The constants with their origins. */
function constantsOf({ constants, memory, cold }: Model, sized: readonly Sized[]): Measure {
  const { connection, response, byte, change, push } = constants
  const whole = sized.filter(({ services }) => services !== few)
  const kinds = whole.flatMap(({ real }) =>
    fleetKinds.filter((kind) => kind !== 'nothing visible').map((kind) => (real.means[kind] ?? 0) / (real.changes[kind] ?? 0)),
  )
  const figures = {
    'a connection, CPU µs': micro(connection),
    'a response and its ACK, CPU µs': micro(response),
    'a MiB, CPU µs': micro(byte * 2 ** 20),
    'a changed file, CPU µs': micro(change),
    'a push, CPU µs': micro(push),
    [`the first ${warming.leaving} proxies of a process, CPU s more`]: cold.toFixed(2),
    'a second at rest, CPU ms': median(whole.map(({ real }) => real.rest * 1000)).toFixed(1),
    'mean of the rounds of a change, of their median': median(kinds).toFixed(2),
    'process, MiB': memory.baseMib.toFixed(0),
    'a proxy, KiB': memory.proxyKib.toFixed(0),
    'of it the simulated code, KiB': (whole.at(-1) as Sized).simulation.kib.toFixed(0),
    origin: `${sized.map(({ services, proxies }) => `${proxies} proxies with ${services} services`).join(', ')}, less the simulated code`,
  }
  return { ...bare, scenario: 'constants', figures }
}

/** The simulation beside measured runs. Those of the calibration have no goal: they show how well the constants explain them. */
function compared({ services, proxies, real, simulation }: Sized, { constants, memory }: Model, isChecked: boolean): Measure[] {
  const changes = Object.entries(real.changes).map(([kind, seen]) => {
    const work = middle(simulation.changes[kind as FleetKind])
    return [`${kind}, CPU s`, seen, cpuOf(work, constants), work] as const
  })
  const resident = services === few ? [] : [['resident, MiB', real.mib, memoryOf(memory, proxies), undefined] as const]
  const rows = [['connecting, CPU s', real.connect, cpuOf(simulation.connect, constants), simulation.connect] as const, ...changes, ...resident]
  return rows.map(([what, seen, said, work]) => {
    const percent = deviation(said, seen)
    const figures = {
      proxies,
      services,
      real: seen.toFixed(4),
      simulated: said.toFixed(4),
      'deviation, %': percent.toFixed(0),
      'of it the simulated code': work ? pureCpu(work).toFixed(4) : '-',
      responses: work ? responsesOf(work) : '-',
      MiB: work ? (bytesOf(work) / 2 ** 20).toFixed(1) : '-',
      for: isChecked ? 'check' : 'calibration',
    }
    progress(`fleet: ${what}: ${JSON.stringify(figures)}`)
    return { ...bare, scenario: what, figures, ...(isChecked ? { goals: [simulationGoal(`${what} of ${proxies} proxies`, percent)] } : {}) }
  })
}

/** Replicas with so many proxies: as many as each fleet needs, and what becomes of them when one is lost. */
async function planned(options: FleetOptions, most: number, { constants, memory, cold }: Model): Promise<Measure[]> {
  const fleets = options.fleets.map((size) => ({ size, replicas: Math.max(2, Math.ceil(size / most)) }))
  const joining = fleets.map(({ replicas }) => Math.ceil(most / (replicas - 1)))
  const { start, connect, changes, busy, again, joins } = await simulated(options, { proxies: most, joining, isWhole: true })
  const seconds = (work: Work | undefined, count = 1, more = 0) => (work ? (cpuOf(work, constants) / count + more).toFixed(2) : '-')
  const all = most / connect.connections
  return fleets.map(({ size, replicas }, index) => {
    const figures = {
      replicas,
      'proxies each': most,
      'resident, MiB': memoryOf(memory, most).toFixed(0),
      'all connect to a new process, CPU s': seconds(connect, 1 / all, cold),
      'endpoint change, CPU s': seconds(middle(changes['endpoint change'])),
      'last proxy after the debounce, ms': lastMs(middle(changes['endpoint change']), constants).toFixed(0),
      'route change, CPU s': seconds(middle(changes['route change'])),
      '10 changes a second, cores': seconds(busy, 10),
      'restart: plan, CPU s': start.toFixed(2),
      'restart: proxies come again, CPU s': seconds(again, 1, cold),
      'restart: bytes sent, % of a first configuration': again ? ((100 * bytesOf(again)) / (bytesOf(connect) * all)).toFixed(2) : '-',
      'one lost: CPU s of each other': seconds(joins[index]),
      'one lost: resident, MiB': memoryOf(memory, most + (joining[index] as number)).toFixed(0),
    }
    progress(`fleet: ${size} proxies: ${JSON.stringify(figures)}`)
    return { ...bare, scenario: `${size} proxies`, figures }
  })
}
