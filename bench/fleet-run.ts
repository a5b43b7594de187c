/** A measured run of the real service with a number of proxies, for the calibration of a simulated replica and to hold it against. */
import { setTimeout as pause } from 'node:timers/promises'
import { Load, type LoadOptions, median } from './load.ts'
import * as mesh from './mesh.ts'
import { DiscoveryServer, processUsage, threadSeconds } from './server.ts'

/** The kinds of changes. */
export const fleetKinds = ['endpoint change', 'route change', 'nothing visible'] as const
export type FleetKind = (typeof fleetKinds)[number]

/**
 * What a process does before it is measured, since code that runs for the first time costs several times as much: `leaving` proxies come beside
 * `staying` ones, see `rounds` changes of each kind, and leave.
 */
export interface Warming {
  readonly staying: number
  readonly leaving: number
  readonly rounds: number
}

/** The settings of a run. */
export interface FleetRun {
  readonly services: number
  readonly namespaces: number
  readonly writers: number
  readonly warming: Warming
  /** All proxies, with those that stay from the warming. */
  readonly proxies: number
  readonly rounds: number
  readonly kinds: readonly FleetKind[]
}

/**
 * What a process spent, in CPU seconds: on its first proxies (those that leave), on all others, on one change of each kind (the median of the rounds,
 * less what it spends at rest, and the mean), and in a second at rest; and its resident MiB while changes go on.
 */
export interface Real {
  readonly first: number
  readonly connect: number
  readonly changes: Readonly<Record<FleetKind, number>>
  readonly means: Readonly<Record<FleetKind, number>>
  readonly rest: number
  readonly mib: number
}

/** Milliseconds in which a process has ended what connections left behind, collections of garbage too. */
const settling = 5000
/** Milliseconds after a change until the next one: routes are pushed once a second. */
const spacing: Readonly<Record<FleetKind, number>> = { 'endpoint change': 400, 'route change': 1200, 'nothing visible': 400 }

/** Runs the real service. */
export async function runFleet({ services, namespaces, writers, warming, proxies, rounds, kinds }: FleetRun): Promise<Real> {
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces) })
  const [staying, leaving] = [new Load(), new Load()]
  let round = 0
  const change = async (kind: FleetKind, load: Load) => {
    const { file, text = '', marker } = mesh.change(kind, round++, services, namespaces)
    const make = () => server.put(file, text)
    if (marker === undefined) make()
    else await load.mark(marker, make)
    await pause(spacing[kind])
  }
  const spentOn = async (work: () => Promise<unknown>) => {
    const [cpu, at] = [threadSeconds(server.pid), performance.now()]
    await work()
    return { cpu: threadSeconds(server.pid) - cpu, seconds: (performance.now() - at) / 1000 }
  }
  try {
    await pause(1500)
    const client = clientOf(server.port, namespaces)
    await staying.connect(warming.staying, client)
    const first = await spentOn(async () => {
      await leaving.connect(warming.leaving, { ...client, from: warming.staying })
      await pause(settling)
    })
    for (const kind of fleetKinds) for (let count = 0; count < warming.rounds; count++) await change(kind, leaving)
    leaving.end()
    await pause(settling)
    const connect = await spentOn(async () => {
      await staying.connect(proxies - warming.staying, { ...client, from: warming.staying + warming.leaving })
      await pause(settling)
    })
    // The median second: in some a collection of garbage is ended that belongs to the connections.
    const rests: number[] = []
    for (let second = 0; second < 5; second++) rests.push((await spentOn(() => pause(1000))).cpu)
    const perSecond = median(rests)
    const mib = [processUsage(server.pid).rss]
    const made: Record<string, number[]> = {}
    for (const kind of kinds) {
      const seen: number[] = []
      made[kind] = seen
      for (let count = 0; count < rounds; count++) {
        const { cpu, seconds } = await spentOn(() => change(kind, staying))
        seen.push(cpu - seconds * perSecond)
        mib.push(processUsage(server.pid).rss)
      }
    }
    const figures = (of: (seen: readonly number[]) => number) =>
      Object.fromEntries(Object.entries(made).map(([kind, seen]) => [kind, of(seen)])) as Record<FleetKind, number>
    return {
      ...{ first: first.cpu - first.seconds * perSecond, connect: connect.cpu - connect.seconds * perSecond, rest: perSecond, mib: median(mib) },
      ...{ changes: figures(median), means: figures((seen) => seen.reduce((sum, one) => sum + one, 0) / seen.length) },
    }
  } finally {
    staying.end()
    leaving.end()
    await server.kill()
  }
}

const clientOf = (port: number, namespaces: number): LoadOptions => ({
  ...{ port, tls: false, delta: true, hosts: true, namespaces, reads: 'first', own: false, misbehaving: 0, atOnce: 50 },
})

/** The least of each figure over several runs: other programs of the machine add CPU seconds to a run, and take none away. The median memory. */
export function leastRun(runs: readonly Real[]): Real {
  const least = (of: (run: Real) => number) => Math.min(...runs.map(of))
  const ofKinds = (of: (run: Real) => Readonly<Record<FleetKind, number>>) =>
    Object.fromEntries(Object.keys(of(runs[0] as Real)).map((kind) => [kind, least((run) => of(run)[kind as FleetKind])])) as Record<
      FleetKind,
      number
    >
  return {
    ...{ first: least(({ first }) => first), connect: least(({ connect }) => connect), rest: least(({ rest }) => rest) },
    ...{ mib: median(runs.map(({ mib }) => mib)), changes: ofKinds(({ changes }) => changes), means: ofKinds(({ means }) => means) },
  }
}
