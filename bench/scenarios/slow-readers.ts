/**
 * Measures fast sidecars alone and beside sidecars that read 10 KB per second. Slow sidecars must not change the figures of the fast ones.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Load, type LoadOptions } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent } from '../server.ts'
import { measureChange, measureOf } from './convergence.ts'

/** `slow` of the `proxies` sidecars are slow; `throttle` is the maximum number of partially sent responses (`PILOT_PUSH_THROTTLE`). */
export interface SlowReadersOptions {
  readonly delta: boolean
  readonly proxies: number
  readonly slow: number
  readonly throttle: number
  readonly services: number
  readonly rounds: number
  readonly writers: number
}

const namespaces = 10
const mib = (bytes: number) => bytes / 1_048_576

/**
 * Measures a connect storm, an endpoint change and a route change for the fast sidecars: alone, then beside the slow ones, on one server.
 */
export async function slowReaders(options: SlowReadersOptions): Promise<Measure[]> {
  const { delta, proxies, slow, throttle, services } = options
  const name = `${delta ? 'delta' : 'sotw'}, throttle ${throttle}`
  progress(`${name}: starting with ${services} services`)
  const env = { PILOT_PUSH_THROTTLE: String(throttle) }
  const server = await DiscoveryServer.start({ writers: options.writers, files: mesh.files(services, namespaces), env })
  const client = { port: server.port, tls: false, delta, hosts: delta, namespaces, reads: 'all', own: false, misbehaving: 0 } as const
  const loads: Load[] = []
  const newLoad = (): Load => {
    const load = new Load()
    loads.push(load)
    return load
  }
  try {
    await pause(1500)
    // The first connections warm up the code.
    const first = newLoad()
    await first.connect(proxies - slow, client)
    first.end()
    const alone = await measureFast(server, newLoad(), client, options, `${name}, ${proxies - slow} alone`)
    loads.at(-1)?.end()
    await pause(2000)
    const standing = newLoad()
    const beside = await measureFast(server, newLoad(), client, options, `${name}, beside ${slow} that read 10 KB/s`, async () => {
      await standing.connect(slow, { ...client, slow: true, from: proxies - slow })
    })
    const lost = await standing.lostStreams()
    const timeouts = await server.metric('pilot_xds_write_timeout')
    const early = await server.metric('pilot_xds_permits_released_early')
    const seen = `slow ones lost ${lost} streams, ${timeouts} send timeouts; ${early} responses without a permit at the end`
    return [...alone, ...beside.map((measure, at) => ({ ...measure, notes: at === beside.length - 1 ? seen : '' }))]
  } finally {
    for (const load of loads) load.end()
    server.stop()
  }
}

async function measureFast(
  server: DiscoveryServer,
  load: Load,
  client: LoadOptions,
  { proxies, slow, services, rounds }: SlowReadersOptions,
  variant: string,
  slowOnes?: () => Promise<void>,
): Promise<Measure[]> {
  progress(`${variant}: connecting`)
  await load.received()
  const then = await server.usage()
  await slowOnes?.()
  const connected = await load.connect(proxies - slow, client)
  const now = await server.usage()
  await pause(1000)
  const measures = [measureOf('connect storm', variant, [connected], spent(now, then), now, mib(connected.bytes), undefined)]
  for (const kind of ['endpoint change', 'route change'] as const) {
    progress(`${variant}: ${kind}`)
    const times = kind === 'endpoint change' ? rounds * 4 : rounds
    // Changes get new numbers, because repeating a change would change nothing.
    measures.push(await measureChange(kind, variant, times, server, load, undefined, { services, from: slowOnes ? times + 1 : 0 }))
  }
  return measures
}
