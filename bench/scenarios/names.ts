/**
 * Measures the cost of name tables: adding a service, for proxies whose agents resolve names and for the same proxies without; and DNS
 * queries that an agent answers.
 */
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Load, once, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, processUsage, spent } from '../server.ts'

const namespaces = 10
/** The total number of queries, and the number of concurrent ones. */
const queries = { all: 100_000, atOnce: 64 }

/** Measures name tables of `services` services for `proxies` proxies. */
export async function names(options: { writers: number; services: number; rounds: number; proxies: number }): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const delta of [false, true]) for (const resolves of [false, true]) measures.push(await serviceAdded({ ...options, delta, resolves }))
  return [...measures, await answered(options.services)]
}

async function serviceAdded({
  writers,
  services,
  rounds,
  proxies,
  delta,
  resolves,
}: Parameters<typeof names>[0] & { delta: boolean; resolves: boolean }): Promise<Measure> {
  const variant = `${proxies} proxies, ${delta ? 'delta' : 'state of the world'}, ${resolves ? 'with' : 'without'} name tables`
  progress(`names: ${variant}`)
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces) })
  const load = new Load()
  try {
    await load.connect(proxies, {
      port: server.port,
      tls: false,
      delta,
      hosts: delta,
      namespaces,
      reads: 'first',
      own: false,
      misbehaving: 0,
      resolves,
    })
    await pause(2000)
    await load.received()
    const before = await server.usage()
    const all: number[] = []
    for (let round = 0; round < rounds; round++) {
      const change = mesh.change('service added', round, services, namespaces)
      const { times } = await load.mark(change.marker as string, () => server.put(change.file, change.text as string))
      all.push(...times)
      await pause(1000)
    }
    const after = await server.usage()
    all.sort((one, other) => one - other)
    const { cpu, threads } = spent(after, before)
    const shares = Object.fromEntries(Object.entries(threads).map(([actor, seconds]) => [actor, seconds / rounds]))
    return {
      scenario: 'service added',
      variant,
      p50: percentile(all, 0.5),
      p99: percentile(all, 0.99),
      last: percentile(all, 1),
      cpu: cpu / rounds,
      threads: shares,
      mib: (await load.received()) / 1_048_576 / rounds,
      rss: after.rss,
    }
  } finally {
    load.end()
    server.stop()
  }
}

/** Measures queries for known names over UDP, with a fixed number of concurrent queries. */
async function answered(hosts: number): Promise<Measure> {
  progress('names: queries to the DNS server of an agent')
  const child = fork(fileURLToPath(new URL('../dns-agent.ts', import.meta.url)), [String(hosts)])
  const socket = createSocket('udp4')
  try {
    const { port } = await once<{ port: number }>(child, 'port')
    await ask(socket, port, hosts, 5000)
    const before = processUsage(child.pid as number)
    const started = performance.now()
    await ask(socket, port, hosts, queries.all)
    const seconds = (performance.now() - started) / 1000
    const after = processUsage(child.pid as number)
    const cpu = after.cpu - before.cpu
    const notes = `${Math.round(queries.all / seconds)} queries a second, ${((cpu / queries.all) * 1e6).toFixed(0)} µs of CPU each`
    return { scenario: 'DNS queries', variant: `${queries.all} for ${hosts} names, UDP`, cpu, mib: 0, rss: after.rss, threads: {}, notes }
  } finally {
    socket.close()
    child.kill()
  }
}

/** Sends `count` queries. Resolves when all are answered, and rejects when no answer arrives for five seconds. */
function ask(socket: ReturnType<typeof createSocket>, port: number, hosts: number, count: number): Promise<void> {
  let sent = 0
  let received = 0
  return new Promise((resolve, reject) => {
    const next = () => {
      if (sent < count) socket.send(queryFor(`svc-${sent % hosts}.ns-0.svc.cluster.local`, sent++ & 0xffff), port, '127.0.0.1')
    }
    const stuck = setInterval(
      () => (received === last ? reject(new Error(`${count - received} queries were not answered`)) : (last = received)),
      5000,
    )
    let last = -1
    const take = () => {
      received++
      next()
      if (received < count) return
      clearInterval(stuck)
      socket.off('message', take)
      resolve()
    }
    socket.on('message', take)
    for (let index = 0; index < queries.atOnce; index++) next()
  })
}

function queryFor(name: string, id: number): Buffer {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1])
}
