/**
 * Measures a rollout of one large service beside one of as many workloads in small services: what it costs the push queue, and the writers
 * beside the bare server. Afterwards each sidecar must hold what a new one gets.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type MockSettings, mockRollout, mockServices, rolloutSteps } from '../../src/registry/mock.ts'
import { growthOf, writersGoal } from '../goals.ts'
import { BareServer } from '../limit.ts'
import { Load, type LoadOptions } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent } from '../server.ts'
import { compareWithFresh } from './convergence.ts'

const namespaces = 3
const perSecond = 50
/** Workloads of a small service. */
const small = 50
/** The longest time from a change to a push (`PILOT_DEBOUNCE_MAX`), in seconds. */
const debounceMax = 10

/** One rollout: CPU seconds of the push queue and of the writers, bytes and pushes, and the bare writers' CPU seconds for as many bytes. */
interface Rollout {
  readonly measure: Measure
  readonly queue: number
  readonly writers: number
  readonly bare: number
}

/** Replaces `workloads` workloads, all of one service and then of services of 50, at 50 a second. */
export async function rollout(writers: number, proxies: number, workloads: number): Promise<Measure[]> {
  const services = Math.ceil(workloads / small)
  const few = await rolled(`${services} services of ${small}`, { writers, proxies, largeServices: services, largeEndpoints: small })
  const one = await rolled(`one service of ${workloads}`, { writers, proxies, largeServices: 1, largeEndpoints: workloads })
  return [
    few.measure,
    {
      ...one.measure,
      goals: [
        growthOf('push queue', one.queue, few.queue),
        writersGoal('writers', one.writers, one.bare),
        writersGoal('writers, small services', few.writers, few.bare),
      ],
    },
  ]
}

interface Options {
  readonly writers: number
  readonly proxies: number
  readonly largeServices: number
  readonly largeEndpoints: number
}

async function rolled(variant: string, { writers, proxies, largeServices, largeEndpoints }: Options): Promise<Rollout> {
  progress(`rollout: ${variant}`)
  const env = {
    PILOT_MOCK_LARGE_SERVICES: String(largeServices),
    PILOT_MOCK_LARGE_ENDPOINTS: String(largeEndpoints),
    PILOT_MOCK_NAMESPACES: String(namespaces),
    PILOT_MOCK_ROLLOUT_PER_SECOND: String(perSecond),
    PILOT_MOCK_ROLLOUTS: String(largeServices),
  }
  const server = await DiscoveryServer.start({ writers, files: mesh.files(10, namespaces), env })
  const load = new Load()
  let bare: BareServer | undefined
  try {
    const client: LoadOptions = {
      ...{ port: server.port, tls: false, delta: true, hosts: true, namespaces },
      ...{ reads: 'all', own: false, misbehaving: 0 },
    }
    const connected = await load.connect(proxies, client)
    const limit = await BareServer.start({
      ...{ threads: writers, proxies, bytes: connected.bytes, names: connected.names, delta: true, tls: undefined, bytesPerSecond: undefined },
    })
    bare = limit.bare
    await load.received()
    const [then, sentThen] = [await server.usage(), await server.metric('pilot_xds_pushes')]
    // The last workload that is replaced.
    await load.mark(lastAddress(largeServices, largeEndpoints), () => undefined)
    await pause(2000)
    const now = await server.usage()
    const { cpu, threads } = spent(now, then)
    const bytes = await load.received()
    const pushes = Math.max(1, Math.round(((await server.metric('pilot_xds_pushes')) - sentThen) / proxies))
    const late = latePushes(await server.metrics())
    const written = await bare.push(bytes / pushes, pushes)
    const writing = Object.entries(threads).reduce((sum, [name, seconds]) => sum + (name.startsWith('xds-writer') ? seconds : 0), 0)
    const same = await compareWithFresh(load, client, variant)
    const queue = threads['push-queue'] ?? Number.NaN
    const figures = {
      'push queue, CPU s': queue.toFixed(2),
      'writers, CPU s': writing.toFixed(2),
      'bare, CPU s': (written.cpu * pushes).toFixed(2),
      'messages a proxy': pushes,
      MiB: (bytes / 1_048_576).toFixed(0),
      [`later than ${debounceMax} s`]: late,
      notes: same,
    }
    const measure: Measure = { scenario: `rollout, ${variant}`, variant, cpu, mib: bytes / 1_048_576, rss: now.rss, threads, figures }
    return { measure, queue, writers: writing, bare: written.cpu * pushes }
  } finally {
    load.end()
    bare?.stop()
    server.stop()
  }
}

/** The address of the last workload that the rollouts bring, as text in the responses that contain it. */
function lastAddress(largeServices: number, largeEndpoints: number): string {
  const none = { services: 0, endpoints: 0, proxiesPerService: 0, churnPerSecond: 0, seed: 1, domain: 'cluster.local', cluster: '' }
  const settings: MockSettings = { ...none, namespaces, largeServices, largeEndpoints }
  const last = mockRollout(settings, mockServices(settings), largeServices * rolloutSteps(settings) - 1)
  return last.at(-1)?.slice.endpoints.at(-1)?.address ?? ''
}

/** The number of pushes that took longer than the debounce may, from the histogram of their times. */
function latePushes(metrics: string): number {
  const of = (suffix: string) => Number(new RegExp(`^pilot_proxy_convergence_time${suffix} (\\S+)$`, 'm').exec(metrics)?.[1] ?? 0)
  return of('_count') - of(`_bucket\\{le="${debounceMax}"\\}`)
}
