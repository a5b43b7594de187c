/**
 * What a fleet of replicas costs that is larger than this machine: one replica is simulated (bench/simulated-replica.ts) with its share of the
 * proxies. What the simulation leaves out is calibrated with measured runs of the real service (bench/fleet-model.ts), and the result is held
 * against a further measured run with other numbers of proxies.
 */
import { fork } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
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
import { simulationGoal } from '../goals.ts'
import { Load, type LoadOptions, once } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer } from '../server.ts'
import { measureChange } from './convergence.ts'

/** The settings of the set. */
export interface FleetOptions {
  readonly services: number
  readonly writers: number
  readonly rounds: number
  /** Proxies of the calibration. */
  readonly proxies: number
  /** Proxies of the run that the simulation is held against. */
  readonly checked: number
  /** Numbers of proxies of the simulated fleets, and of each of their replicas. */
  readonly fleets: readonly number[]
  readonly each: readonly number[]
}

const namespaces = 10
/** Proxies that connect before anything is measured: code that runs for the first time costs several times as much. */
const warm = 100
/** Services of the mesh in which connections are sent little. */
const few = 10
const kinds = ['endpoint change', 'route change', 'nothing visible'] as const

/** The CPU seconds of a real run: of all connections, and of one change of each kind; resident MiB before and after. */
interface Real {
  readonly connect: number
  readonly changes: Readonly<Record<(typeof kinds)[number], number>>
  readonly mib: { readonly before: number; readonly after: number }
}

/** Runs the set. */
export async function fleet(options: FleetOptions): Promise<Measure[]> {
  const { services, proxies, checked } = options
  const small = await measured(options, few, proxies, [])
  const large = await measured(options, services, proxies, kinds)
  const simulatedFew = await simulated(options, { services: few, proxies })
  const simulation = await simulated(options, { proxies })
  const times = (real: Real, kind: (typeof kinds)[number]) => real.changes[kind] * options.rounds
  const constants = calibrate({
    invisible: { cpu: times(large, 'nothing visible'), work: simulation.invisible },
    endpoint: { cpu: times(large, 'endpoint change'), work: simulation.endpoint },
    small: { cpu: small.connect, work: simulatedFew.connect },
    large: { cpu: large.connect, work: simulation.connect },
  })
  const memory = memoryLine({ proxies: warm, mib: large.mib.before }, { proxies: warm + proxies, mib: large.mib.after }, simulation.kib)
  const measures = [constantsOf(constants, memory, simulation, proxies)]
  measures.push(...compared(options, proxies, large, simulation, constants, memory))
  const real = await measured(options, services, checked, kinds)
  measures.push(...compared(options, checked, real, await simulated(options, { proxies: checked }), constants, memory))
  for (const each of options.each) measures.push(...(await planned(options, each, constants, memory)))
  return measures
}

/** Runs the real service. */
async function measured(
  { rounds, writers }: FleetOptions,
  services: number,
  proxies: number,
  changes: readonly (typeof kinds)[number][],
): Promise<Real> {
  progress(`fleet: the real service with ${services} services and ${proxies} proxies`)
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces) })
  const load = new Load()
  try {
    await pause(1500)
    const client: LoadOptions = {
      port: server.port,
      tls: false,
      delta: true,
      hosts: true,
      namespaces,
      reads: 'first',
      own: false,
      misbehaving: 0,
      atOnce: 50,
    }
    await load.connect(warm, client)
    await pause(2000)
    const before = await server.usage()
    await load.connect(proxies, { ...client, from: warm })
    await pause(2000)
    const after = await server.usage()
    const cpu: Record<string, number> = {}
    for (const kind of changes) cpu[kind] = (await measureChange(kind, 'fleet', rounds, server, load, undefined, { services })).cpu
    return { connect: after.cpu - before.cpu, changes: cpu as Real['changes'], mib: { before: before.rss, after: after.rss } }
  } finally {
    load.end()
    await server.kill()
  }
}

/** Simulates a replica. */
async function simulated({ services, writers, rounds }: FleetOptions, command: Partial<FleetCommand> & { proxies: number }): Promise<FleetReport> {
  progress(`fleet: simulating ${command.proxies} proxies`)
  const child = fork(fileURLToPath(new URL('../fleet-process.ts', import.meta.url)), { execArgv: ['--expose-gc'] })
  try {
    const report = once<FleetReport>(child, 'simulated')
    child.send({ services, namespaces, writers, warm, rounds, joining: [], isWhole: false, ...command } satisfies FleetCommand)
    return await report
  } finally {
    child.removeAllListeners('exit')
    child.kill()
  }
}

const bare = { variant: 'fleet', cpu: Number.NaN, mib: 0, rss: Number.NaN, threads: {} }
const micro = (seconds: number) => (seconds * 1e6).toFixed(1)

/** The constants with their origins. */
function constantsOf({ connection, response, byte, change }: Constants, memory: MemoryLine, { kib }: FleetReport, proxies: number): Measure {
  const origin = `measured with ${proxies} proxies, less the simulated code`
  const figures = {
    'a connection, CPU µs': `${micro(connection)} (connecting in a mesh of ${few} services, ${origin})`,
    'a response and its ACK, CPU µs': `${micro(response)} (endpoint changes, ${origin})`,
    'a MiB, CPU µs': `${micro(byte * 2 ** 20)} (connecting in both meshes, ${origin})`,
    'a changed file, CPU µs': `${micro(change)} (changes that no proxy sees, ${origin})`,
    'process, MiB': `${memory.baseMib.toFixed(0)} (resident with ${warm} and ${warm + proxies} proxies)`,
    'a proxy, KiB': `${memory.proxyKib.toFixed(0)} (the same), ${kib.toFixed(0)} of it in the simulated code`,
  }
  return { ...bare, scenario: 'constants', figures }
}

/** The simulation beside a measured run. */
function compared(
  { rounds }: FleetOptions,
  proxies: number,
  real: Real,
  simulation: FleetReport,
  constants: Constants,
  memory: MemoryLine,
): Measure[] {
  const change = (kind: (typeof kinds)[number], work: Work) => [`${kind}, CPU s`, real.changes[kind], cpuOf(work, constants) / rounds, work] as const
  const rows = [
    ['connecting, CPU s', real.connect, cpuOf(simulation.connect, constants), simulation.connect] as const,
    change('endpoint change', simulation.endpoint),
    change('route change', simulation.route),
    ['resident, MiB', real.mib.after, memoryOf(memory, warm + proxies), undefined] as const,
  ]
  return rows.map(([what, seen, said, work]) => {
    const percent = deviation(said, seen)
    const figures = {
      proxies,
      real: seen.toFixed(3),
      simulated: said.toFixed(3),
      'deviation, %': percent.toFixed(0),
      'of it the simulated code': work ? (pureCpu(work) / (work.changes || 1)).toFixed(3) : '-',
      responses: work ? responsesOf(work) : '-',
      MiB: work ? (bytesOf(work) / 2 ** 20).toFixed(1) : '-',
    }
    progress(`fleet: ${what}: ${JSON.stringify(figures)}`)
    return { ...bare, scenario: what, figures, goals: [simulationGoal(`${what} of ${proxies} proxies`, percent)] }
  })
}

/** Replicas with so many proxies: as many as each fleet needs, and what becomes of them when one is lost. */
async function planned(options: FleetOptions, most: number, constants: Constants, memory: MemoryLine): Promise<Measure[]> {
  const fleets = options.fleets.map((size) => ({ size, replicas: Math.max(2, Math.ceil(size / most)) }))
  const joining = fleets.map(({ replicas }) => Math.ceil(most / (replicas - 1)))
  const { start, connect, endpoint, route, busy, again, joins } = await simulated(options, { proxies: most - warm, joining, isWhole: true })
  const seconds = (work: Work | undefined, count = 1) => (work ? (cpuOf(work, constants) / count).toFixed(2) : '-')
  return fleets.map(({ size, replicas }, index) => {
    const figures = {
      replicas,
      'proxies each': most,
      'resident, MiB': memoryOf(memory, most).toFixed(0),
      'all connect, CPU s': seconds(connect),
      'endpoint change, CPU s': seconds(endpoint, options.rounds),
      'last proxy after the debounce, ms': (lastMs(endpoint, constants) / options.rounds).toFixed(0),
      'route change, CPU s': seconds(route, options.rounds),
      '10 changes a second, cores': seconds(busy, 10),
      'restart: plan, CPU s': start.toFixed(2),
      'restart: proxies come again, CPU s': seconds(again),
      'restart: bytes sent, % of a first configuration': again
        ? ((100 * bytesOf(again) * connect.connections) / bytesOf(connect) / most).toFixed(2)
        : '-',
      'one lost: CPU s of each other': seconds(joins[index]),
      'one lost: resident, MiB': memoryOf(memory, most + (joining[index] as number)).toFixed(0),
    }
    progress(`fleet: ${size} proxies: ${JSON.stringify(figures)}`)
    return { ...bare, scenario: `${size} proxies`, figures }
  })
}
