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

/** CPU seconds that a process spent, and in how many seconds. */
interface Spent {
  readonly cpu: number
  readonly seconds: number
}

/** What a process spent on its first proxies (those that leave), on all others, on each round of each change, and in a second at rest; its resident MiB. */
export interface RawRun {
  readonly first: Spent
  readonly connect: Spent
  readonly changes: Readonly<Partial<Record<FleetKind, readonly Spent[]>>>
  readonly rest: number
  readonly mib: number
}

/** The CPU seconds of several runs, less what a process spends at rest; of changes the median of the rounds, and the mean. Resident MiB while changes go on. */
export interface Real {
  readonly first: number
  readonly connect: number
  readonly changes: Readonly<Partial<Record<FleetKind, number>>>
  readonly means: Readonly<Partial<Record<FleetKind, number>>>
  readonly rest: number
  readonly mib: number
}

/**
 * After connections came or left, a process goes on collecting garbage for up to half a minute. It is calm when it spends at most so many CPU seconds in
 * each of two seconds; after `patience` seconds it is not waited for any longer.
 */
const calm = { cpu: 0.03, patience: 30 }
/** Milliseconds after a change until the next one: routes are pushed once a second. */
const spacing: Readonly<Record<FleetKind, number>> = { 'endpoint change': 400, 'route change': 1200, 'nothing visible': 400 }

/** Runs the real service. */
export async function runFleet({ services, namespaces, writers, warming, proxies, rounds, kinds }: FleetRun): Promise<RawRun> {
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
  const spentOn = async (work: () => Promise<unknown>): Promise<Spent> => {
    const [cpu, at] = [threadSeconds(server.pid), performance.now()]
    await work()
    return { cpu: threadSeconds(server.pid) - cpu, seconds: (performance.now() - at) / 1000 }
  }
  const settled = async () => {
    for (let second = 0, quiet = 0; second < calm.patience && quiet < 2; second++) {
      const { cpu } = await spentOn(() => pause(1000))
      quiet = cpu <= calm.cpu ? quiet + 1 : 0
    }
  }
  const connecting = (load: Load, count: number, from: number) =>
    spentOn(async () => {
      await load.connect(count, { ...clientOf(server.port, namespaces), from })
      await settled()
    })
  try {
    await pause(1500)
    await connecting(staying, warming.staying, 0)
    const first = await connecting(leaving, warming.leaving, warming.staying)
    for (const kind of fleetKinds) for (let count = 0; count < warming.rounds; count++) await change(kind, leaving)
    leaving.end()
    await settled()
    const connect = await connecting(staying, proxies - warming.staying, warming.staying + warming.leaving)
    // The least of some seconds: garbage that is collected in the others would be taken off each change.
    const rests: number[] = []
    for (let second = 0; second < 5; second++) rests.push((await spentOn(() => pause(1000))).cpu)
    const mib = [processUsage(server.pid).rss]
    const made: Record<string, Spent[]> = {}
    for (const kind of kinds) {
      const seen: Spent[] = []
      made[kind] = seen
      for (let count = 0; count < rounds; count++) {
        seen.push(await spentOn(() => change(kind, staying)))
        mib.push(processUsage(server.pid).rss)
      }
    }
    return { first, connect, changes: made, rest: Math.min(...rests), mib: median(mib) }
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
export function leastRun(runs: readonly RawRun[]): Real {
  const rest = Math.min(...runs.map((run) => run.rest))
  const beyond = ({ cpu, seconds }: Spent) => cpu - seconds * rest
  const least = (of: (run: RawRun) => number) => Math.min(...runs.map(of))
  const kinds = fleetKinds.filter((kind) => runs[0]?.changes[kind])
  const ofKinds = (of: (rounds: readonly number[]) => number) =>
    Object.fromEntries(kinds.map((kind) => [kind, least(({ changes }) => of((changes[kind] ?? []).map(beyond)))]))
  return {
    ...{ first: least(({ first }) => beyond(first)), connect: least(({ connect }) => beyond(connect)), rest },
    ...{ changes: ofKinds(median), means: ofKinds((rounds) => rounds.reduce((sum, one) => sum + one, 0) / rounds.length) },
    mib: median(runs.map(({ mib }) => mib)),
  }
}
