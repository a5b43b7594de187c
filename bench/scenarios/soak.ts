/** Measures whether memory grows under changes and connections of all kinds at full speed. */
import { setTimeout as pause } from 'node:timers/promises'
import { Load, type LoadOptions, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent, type Usage } from '../server.ts'
import { visit } from '../visitors.ts'

const services = 100
const namespaces = 10
/** The number of changes in one file, which is one round. */
const batch = 100
const residents = 20
/** The idle time before memory is measured, in milliseconds. Unused state is released within half a minute. */
const restMs = 45_000
const client: Omit<LoadOptions, 'port'> = { tls: false, delta: true, hosts: true, namespaces, reads: 'first', own: false, misbehaving: 0 }

interface Memory {
  readonly usage: Usage
  /** Bytes of heap, by actor. */
  readonly heaps: Readonly<Record<string, number>>
  readonly slabs: number
  readonly classes: number
}

/**
 * Makes `changes` changes and `connects` connections, in rounds of a hundred changes and a proportional number of connections. Each round
 * waits until a resident proxy has the last change. The configuration is the same at a tenth and at the end, so that any growth is a leak.
 */
export async function soak(writers: number, changes: number, connects: number): Promise<Measure[]> {
  progress(`soak: ${changes} changes, ${connects} connects`)
  const env = { PILOT_DEBOUNCE_AFTER: '1ms', PILOT_DEBOUNCE_MAX: '50ms' }
  const server = await DiscoveryServer.start({ writers, files: mesh.files(services, namespaces), env, logLevel: 'all:error' })
  const load = new Load()
  try {
    await load.connect(residents, { ...client, port: server.port })
    const started = await server.usage()
    const rounds = Math.ceil(changes / batch)
    const lags: number[] = []
    let visitors = 0
    let tenth: Memory | undefined
    const begun = performance.now()
    for (let round = 0; round < rounds; round++) {
      const coming = Math.round(((round + 1) * connects) / rounds) - visitors
      const visits = Array.from({ length: coming }, () => visit(server.port, visitors++))
      const { marker, text } = mesh.manyChanges(round, batch, namespaces)
      const { times } = await load.mark(marker, () => server.put('changing.yaml', text))
      await Promise.all(visits)
      lags.push(percentile(times, 1) ?? 0)
      if (round + 1 === Math.ceil(rounds / 10)) tenth = await resting(server)
      if (round % Math.ceil(rounds / 20) === 0) progress(`soak: round ${round + 1} of ${rounds}, ${(await server.usage()).rss.toFixed(0)} MiB`)
    }
    const seconds = (performance.now() - begun) / 1000
    const end = await resting(server)
    if (!tenth) throw new Error('too few changes for a tenth of them')
    lags.sort((one, other) => one - other)
    const heaps = Object.keys(end.heaps).map((actor) => `${actor} ${mib(tenth.heaps[actor])} -> ${mib(end.heaps[actor])}`)
    return [
      {
        scenario: 'soak',
        variant: `${rounds * batch} changes, ${visitors} connects`,
        p50: percentile(lags, 0.5),
        p99: percentile(lags, 0.99),
        last: percentile(lags, 1),
        ...spent(end.usage, started),
        mib: (await load.received()) / 1_048_576,
        rss: end.usage.rss,
        notes:
          `${seconds.toFixed(0)} s; resident ${tenth.usage.rss.toFixed(0)} MiB at a tenth, ${end.usage.rss.toFixed(0)} at the end: ${(end.usage.rss / tenth.usage.rss).toFixed(3)}x (goal 1.05x); ` +
          `heaps in MiB: ${heaps.join(', ')}; slabs ${mib(tenth.slabs)} -> ${mib(end.slabs)}; classes ${tenth.classes} -> ${end.classes}`,
      },
    ]
  } finally {
    load.end()
    server.stop()
  }
}

const mib = (bytes = 0): string => (bytes / 1_048_576).toFixed(1)

/** Restores the initial configuration, waits until the server is idle, and measures. */
async function resting(server: DiscoveryServer): Promise<Memory> {
  server.remove('changing.yaml')
  await pause(restMs)
  const heaps = Object.fromEntries(
    [...(await server.metrics()).matchAll(/^actor_heap_bytes\{actor="([^"]+)"\} (\S+)$/gm)].map(([, actor, bytes]) => [
      actor as string,
      Number(bytes),
    ]),
  )
  return { usage: await server.usage(), heaps, slabs: await server.metric('pilot_slab_bytes'), classes: await server.metric('pilot_proxy_classes') }
}
