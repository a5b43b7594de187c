/** Measures how cost grows with the number of classes, with services that no proxy sees, and under continuous changes. */
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readyGoal } from '../goals.ts'
import type { Limit } from '../limit.ts'
import { Load, type LoadOptions, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { cpuOfRuns, DiscoveryServer, spent } from '../server.ts'

const namespaces = 10
const mib = (bytes: number) => bytes / 1_048_576
const client: Omit<LoadOptions, 'port'> = { tls: false, delta: true, hosts: true, namespaces, reads: 'first', own: false, misbehaving: 0 }

/**
 * Connects workloads that each form a class, with 2,000 services. Measures memory and CPU per change with a quarter, half and all of them.
 */
export async function classes(writers: number, services: number): Promise<Measure[]> {
  const measures: Measure[] = []
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces) })
  const load = new Load()
  try {
    await pause(2000)
    let connected = 0
    for (const count of [services / 4, services / 2, services]) {
      progress(`classes: ${count} workloads`)
      const variant = `${count} classes, delta`
      const before = await server.usage()
      // Numbers continue after the previous ones, so that each workload is new.
      const arrivals = await load.connect(count - connected, { ...client, port: server.port, own: true, from: connected })
      await pause(2000)
      const after = await server.usage()
      measures.push({
        scenario: 'workloads connect',
        variant,
        p50: percentile(arrivals.times, 0.5),
        p99: percentile(arrivals.times, 0.99),
        last: percentile(arrivals.times, 1),
        ...spent(after, before),
        mib: mib(arrivals.bytes),
        rss: after.rss,
        notes: `${count - connected} more; ${await server.metric('pilot_proxy_classes')} classes`,
      })
      connected = count
      for (const kind of ['endpoint change', 'route change', 'service added'] as const) {
        await load.received()
        const then = await server.usage()
        const change = mesh.change(kind, count, services, namespaces)
        const { times } = await load.mark(change.marker as string, () => server.put(change.file, change.text as string))
        await pause(4000)
        const now = await server.usage()
        const size = mib(await load.received())
        const when = { p50: percentile(times, 0.5), p99: percentile(times, 0.99), last: percentile(times, 1) }
        measures.push({ scenario: kind, variant, ...when, ...spent(now, then), mib: size, rss: now.rss })
      }
    }
  } finally {
    load.end()
    server.stop()
  }
  return measures
}

/**
 * Starts a large mesh with one sidecar that sees ten services. Measures the time until the server is ready, beside a process that only parses
 * the same files with one thread as the server does, and the sidecar's first configuration.
 */
export async function scoped(writers: number, services: number, endpoints: number): Promise<Measure[]> {
  progress(`scoped: starting with ${services} services of ${endpoints} endpoints`)
  const server = await DiscoveryServer.start({ writers, files: mesh.scopedFiles(services, endpoints) })
  const load = new Load()
  try {
    const before = await server.usage()
    const { times, bytes } = await load.connect(1, { ...client, port: server.port, namespace: 'scoped' })
    await pause(500)
    const after = await server.usage()
    const ready = { last: server.readyAfter * 1000, ...spent(before, { cpu: 0, rss: 0, threads: {} }), mib: 0, rss: before.rss }
    const limit = bareParse(server.dir)
    const variant = `${services} x ${endpoints}, 10 seen`
    return [
      { scenario: 'start until ready', variant, ...ready, limit, goals: [readyGoal(ready.last / limit.last)] },
      { scenario: 'first configuration', variant, last: times[0] ?? 0, ...spent(after, before), mib: mib(bytes), rss: after.rss },
    ]
  } finally {
    load.end()
    server.stop()
  }
}

/** Returns what a process takes that only parses the files of a folder, from its start to its end. Its memory is not measured. */
export function bareParse(folder: string): Limit {
  const began = performance.now()
  const cpu = cpuOfRuns([fileURLToPath(new URL('../bare-parse.ts', import.meta.url)), folder], 1)
  return { last: performance.now() - began, cpu, rss: Number.NaN }
}

/** Changes endpoints continuously. Measures how long changes take to reach proxies, and whether memory grows. */
export async function churn(writers: number, streams: number, changesPerSecond: number, seconds: number): Promise<Measure[]> {
  progress(`churn: ${streams} streams, ${changesPerSecond} changes a second for ${seconds} s`)
  const env = { PILOT_MOCK_SERVICES: '50', PILOT_MOCK_ENDPOINTS: '5', PILOT_MOCK_CHURN_PER_SECOND: String(changesPerSecond) }
  const server = await DiscoveryServer.start({ writers, files: mesh.files(10, 1), env })
  const load = new Load()
  try {
    const { times: connects } = await load.connect(streams, { ...client, port: server.port, namespaces: 1 })
    progress(`churn: connected after ${connects.at(-1)} ms`)
    await pause(3000)
    await load.received()
    const lag: number[] = []
    const memory: number[] = []
    const before = await server.usage()
    const end = Date.now() + seconds * 1000
    for (let round = 0; Date.now() < end; round++) {
      const change = mesh.change('endpoint change', round, 9, 1)
      const { times } = await load.mark(change.marker as string, () => server.put(change.file, change.text as string))
      lag.push(...times)
      memory.push((await server.usage()).rss)
    }
    const after = await server.usage()
    lag.sort((one, other) => one - other)
    const half = (numbers: readonly number[]) => Math.max(...numbers)
    const middle = Math.ceil(memory.length / 2)
    const depth = Math.max(...[...(await server.metrics()).matchAll(/^actor_mailbox_depth\{[^}]*\} (\S+)$/gm)].map(([, value]) => Number(value)), 0)
    return [
      {
        scenario: 'steady change',
        variant: `${streams} streams, ${changesPerSecond}/s`,
        p50: percentile(lag, 0.5),
        p99: percentile(lag, 0.99),
        last: percentile(lag, 1),
        ...spent(after, before),
        mib: mib(await load.received()),
        rss: after.rss,
        notes: `${memory.length} probes; most memory ${half(memory.slice(0, middle)).toFixed(0)} MiB in the first half, ${half(memory.slice(middle)).toFixed(0)} in the second; deepest mailbox at the end ${depth}`,
      },
    ]
  } finally {
    load.end()
    server.stop()
  }
}
