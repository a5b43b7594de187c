/**
 * The main figures: all sidecars connect, then an endpoint, a route and a service change, each seen by every sidecar, beside
 * the bare limit. Afterwards each sidecar must hold what a fresh one like it gets.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Shown } from '../clients.ts'
import { BareServer, type Limit } from '../limit.ts'
import { type Arrivals, Load, type LoadOptions, median, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent, type TlsFiles, type Usage } from '../server.ts'

/** Size and shape of a run. */
export interface ConvergenceOptions {
  readonly delta: boolean
  /** The sidecars take virtual hosts by themselves. */
  readonly hosts: boolean
  readonly proxies: number
  readonly services: number
  readonly rounds: number
  readonly writers: number
  readonly tls?: TlsFiles | undefined
  /** What the sidecars show over TLS, at the server and at the limit, and variables that have the server take it. */
  readonly callers?: { readonly shown: readonly Shown[]; readonly atLimit: readonly Shown[]; readonly env: Readonly<Record<string, string>> }
  /** Every so-manieth sidecar misbehaves in one of three ways; 0 = none. */
  readonly misbehaving: number
  /** Bytes a second that each sidecar reads, at the server and at the limit; as fast as it can by default. */
  readonly bytesPerSecond?: number | undefined
  /** Named in the results beside the mode. */
  readonly variant: string
  /** Which changes to measure; all by default. */
  readonly changes?: readonly mesh.ChangeKind[]
}

const namespaces = 10
const mib = (bytes: number) => bytes / 1_048_576

/** Runs the whole sequence. */
export async function convergence(options: ConvergenceOptions): Promise<Measure[]> {
  const { delta, hosts, proxies, services, rounds, tls, callers, bytesPerSecond } = options
  const variant = `${delta ? 'delta' : 'sotw'}${options.variant ? `, ${options.variant}` : ''}`
  progress(`${variant}: starting with ${services} services`)
  const server = await DiscoveryServer.start({ writers: options.writers, files: mesh.files(services, namespaces), tls, env: callers?.env ?? {} })
  const load = new Load()
  let bare: BareServer | undefined
  const measures: Measure[] = []
  try {
    await pause(1500)
    const client: LoadOptions = {
      port: server.port,
      tls: tls !== undefined,
      shown: callers?.shown,
      delta,
      hosts,
      namespaces,
      reads: 'all',
      own: false,
      misbehaving: options.misbehaving,
      bytesPerSecond,
    }
    progress(`${variant}: connecting ${proxies} sidecars`)
    const before = await server.usage()
    const connected = await load.connect(proxies, client)
    await pause(1000)
    const after = await server.usage()
    const limit = await BareServer.start({ threads: options.writers, proxies, bytes: connected.bytes, tls, shown: callers?.atLimit, bytesPerSecond })
    bare = limit.bare
    measures.push(measureOf('connect storm', variant, [connected], spent(after, before), after, mib(connected.bytes), limit.connect))
    for (const kind of options.changes ?? mesh.changeKinds) {
      const times = kind === 'endpoint change' || kind === 'nothing visible' ? rounds * 4 : rounds
      progress(`${variant}: ${kind}, ${times} times`)
      measures.push(await measureChange(kind, variant, times, server, load, bare, services))
    }
    const note = await compareWithFresh(load, client, variant)
    const last = measures.pop() as Measure
    measures.push({ ...last, notes: [last.notes, note].filter(Boolean).join('; ') })
  } finally {
    load.end()
    bare?.stop()
    server.stop()
  }
  return measures
}

/** Makes changes of a kind, numbered from `from` on, and measures how long each takes to every proxy. */
export async function measureChange(
  kind: mesh.ChangeKind,
  variant: string,
  rounds: number,
  server: DiscoveryServer,
  load: Load,
  bare: BareServer | undefined,
  services: number,
  from = 0,
): Promise<Measure> {
  const pauseAfter = kind === 'endpoint change' || kind === 'nothing visible' ? 400 : 1200
  const make = async (round: number): Promise<Arrivals | undefined> => {
    const change = mesh.change(kind, from + round, services, namespaces)
    const apply = () => (change.text === undefined ? server.remove(change.file) : server.put(change.file, change.text))
    if (change.marker === undefined) apply()
    const arrivals = change.marker === undefined ? undefined : await load.mark(change.marker, apply)
    await pause(pauseAfter)
    return arrivals
  }
  // The first change of a kind finds code that was never run; it does not count.
  await make(rounds)
  await pause(2500)
  await load.received()
  const counters = async () => ({ pushes: await server.metric('pilot_xds_pushes'), avoided: await server.metric('pilot_pushes_avoided_total') })
  const then = await counters()
  const before = await server.usage()
  const arrivals: Arrivals[] = []
  for (let round = 0; round < rounds; round++) {
    const made = await make(round)
    if (made) arrivals.push(made)
  }
  // What is gone leaves a while after the routes to it.
  if (kind === 'service removed') await pause(3000)
  const after = await server.usage()
  const size = mib(await load.received()) / rounds
  const { cpu, threads } = spent(after, before)
  const share = Object.fromEntries(Object.entries(threads).map(([name, seconds]) => [name, seconds / rounds]))
  const limit = size > 0 && arrivals.length > 0 ? await bare?.push(size * 1_048_576, rounds) : undefined
  const measure = measureOf(kind, variant, arrivals, { cpu: cpu / rounds, threads: share }, after, size, limit)
  if (kind !== 'nothing visible') return measure
  const now = await counters()
  return { ...measure, notes: `${now.pushes - then.pushes} pushes for ${rounds} changes, ${now.avoided - then.avoided} counted as avoided` }
}

/** Arrivals and what was spent as a row of the results. */
export function measureOf(
  scenario: string,
  variant: string,
  arrivals: readonly Arrivals[],
  { cpu, threads }: { cpu: number; threads: Record<string, number> },
  usage: Usage,
  size: number,
  limit: Limit | undefined,
): Measure {
  const all = arrivals.flatMap((one) => [...one.times]).sort((one, other) => one - other)
  const times =
    all.length === 0 ? {} : { p50: percentile(all, 0.5), p99: percentile(all, 0.99), last: median(arrivals.map((one) => percentile(one.times, 1))) }
  return { scenario, variant, ...times, cpu, threads, mib: size, rss: usage.rss, ...(limit ? { limit } : {}) }
}

/** Each sidecar must hold what a fresh one of its namespace gets, state of the world or delta. Throws when one does not. */
async function compareWithFresh(load: Load, client: LoadOptions, variant: string): Promise<string> {
  await pause(3000)
  const held = await load.digests()
  // Who takes virtual hosts by themselves holds other resources than who does not.
  for (const delta of client.hosts ? [true] : [false, true]) {
    const fresh = new Load()
    try {
      await fresh.connect(namespaces, { ...client, delta, misbehaving: 0, bytesPerSecond: undefined })
      await pause(1000)
      const wanted = await fresh.digests()
      const wrong = [...held].filter(([sidecar, digest]) => digest !== wanted.get(sidecar % namespaces))
      if (wrong.length > 0) {
        const [[sidecar, digest] = []] = wrong
        throw new Error(
          `${variant}: ${wrong.length} sidecars differ from fresh ones (${delta ? 'delta' : 'sotw'}), first ${sidecar}: ${digest} instead of ${wanted.get((sidecar ?? 0) % namespaces)}`,
        )
      }
    } finally {
      fresh.end()
    }
  }
  return `all ${held.size} hold what fresh ones get`
}
