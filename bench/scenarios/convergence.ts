/**
 * The main figures: all sidecars connect, then endpoints, routes and services change, each change visible to every sidecar, beside the bare
 * server. Afterwards each sidecar must hold the same resources as a new one in its namespace.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Shown } from '../clients.ts'
import { BareServer, type Limit } from '../limit.ts'
import { type Arrivals, Load, type LoadOptions, median, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent, type TlsFiles, type Usage } from '../server.ts'

/** The settings of a run. */
export interface ConvergenceOptions {
  readonly delta: boolean
  /** Whether the sidecars take virtual hosts as separate resources (VHDS). */
  readonly hosts: boolean
  readonly proxies: number
  readonly services: number
  readonly rounds: number
  readonly writers: number
  readonly tls?: TlsFiles | undefined
  /** The credentials of the sidecars over TLS, at the server and at the bare server, and variables with which the server accepts them. */
  readonly callers?: { readonly shown: readonly Shown[]; readonly atLimit: readonly Shown[]; readonly env: Readonly<Record<string, string>> }
  /** Of every `misbehaving` sidecars three misbehave, each in another way; 0: none. */
  readonly misbehaving: number
  /** The rate at which each sidecar reads, at the server and at the bare server, in bytes per second. Unlimited by default. */
  readonly bytesPerSecond?: number | undefined
  /** Shown in the results after the mode. */
  readonly variant: string
  /** The number of namespaces; ten by default. */
  readonly namespaces?: number
  /** The kinds of changes to measure. All by default. */
  readonly changes?: readonly mesh.ChangeKind[]
}

const usualNamespaces = 10
const mib = (bytes: number) => bytes / 1_048_576

/** Runs the scenario. */
export async function convergence(options: ConvergenceOptions): Promise<Measure[]> {
  const { delta, hosts, proxies, services, rounds, tls, callers, bytesPerSecond, namespaces = usualNamespaces } = options
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
    const { bytes, names } = connected
    const limit = await BareServer.start({ threads: options.writers, proxies, bytes, names, delta, tls, shown: callers?.atLimit, bytesPerSecond })
    bare = limit.bare
    measures.push(measureOf('connect storm', variant, [connected], spent(after, before), after, mib(connected.bytes), limit.connect))
    for (const kind of options.changes ?? mesh.changeKinds) {
      const times = kind === 'endpoint change' || kind === 'nothing visible' ? rounds * 4 : rounds
      progress(`${variant}: ${kind}, ${times} times`)
      measures.push(await measureChange(kind, variant, times, server, load, bare, { services, namespaces }))
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

/** Makes `rounds` changes of a kind, numbered from `from` on, and measures how long each takes to reach every proxy. */
export async function measureChange(
  kind: mesh.ChangeKind,
  variant: string,
  rounds: number,
  server: DiscoveryServer,
  load: Load,
  bare: BareServer | undefined,
  { services, namespaces = usualNamespaces, from = 0 }: { readonly services: number; readonly namespaces?: number; readonly from?: number },
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
  // The first change of a kind warms up the code and is not measured.
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
  // Removed resources are withdrawn a while after the routes to them.
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

/** Returns a measure from arrivals and resource usage. */
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

/** Compares each sidecar's resources with those of a new sidecar in its namespace, over SotW and delta. Throws when they differ. */
export async function compareWithFresh(load: Load, client: LoadOptions, variant: string): Promise<string> {
  await pause(3000)
  const held = await load.digests()
  // With VHDS a proxy holds other resources than without, so such sidecars are compared over delta only.
  for (const delta of client.hosts ? [true] : [false, true]) {
    const fresh = new Load()
    try {
      await fresh.connect(client.namespaces, { ...client, delta, misbehaving: 0, bytesPerSecond: undefined })
      await pause(1000)
      const wanted = await fresh.digests()
      const wrong = [...held].filter(([sidecar, digest]) => digest !== wanted.get(sidecar % client.namespaces))
      if (wrong.length > 0) {
        const [[sidecar, digest] = []] = wrong
        throw new Error(
          `${variant}: ${wrong.length} sidecars differ from fresh ones (${delta ? 'delta' : 'sotw'}), first ${sidecar}: ${digest} instead of ${wanted.get((sidecar ?? 0) % client.namespaces)}`,
        )
      }
    } finally {
      fresh.end()
    }
  }
  return `all ${held.size} hold what fresh ones get`
}
