/**
 * A worker thread with one well-behaved proxy. It repeatedly changes an endpoint and measures how long each change takes to arrive,
 * independently of the load of the test's thread. Posts `ready`, `changed` when it has a change, `moved` when it has connected again, a {@link LateChange}
 * when a change takes very long, and a {@link GoodProxyReport} after it receives a message.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { OwnTime } from './own-time.ts'
import { serviceEntry } from './service-entry.ts'
import { until } from './until.ts'
import { sidecarNode, XdsClient } from './xds-client.ts'

/** The worker's data. */
export interface GoodProxyData {
  readonly port: number
  /** The configuration directory of the service. */
  readonly dir: string
}

/** The report that the worker posts when it is stopped. */
export interface GoodProxyReport {
  /** Own time in milliseconds from writing the file to the arrival of the change, one entry per change. */
  readonly latencies: readonly number[]
  /**
   * How its stream ended; undefined while it is open. No change arrives after that. A connection that was closed to balance connections among
   * the writers does not count: as Envoy does, the proxy connects again.
   */
  readonly closed: XdsClient['closed']
}

/** A change that has not arrived after {@link lateMs}, with the state of the proxy at that time, which says on which side it was lost. */
export interface LateChange {
  readonly late: number
  readonly closed: XdsClient['closed']
  /** The number of responses by type, and how many resources of each type the proxy has. */
  readonly responses: Readonly<Record<string, number>>
  readonly resources: Readonly<Record<string, number>>
  /** Whether it has the cluster, and the load assignment with the address before. */
  readonly hasCluster: boolean
  readonly hasAddressBefore: boolean
  /** The last types that it received, the last names that were removed, and the document as it stands in its file. */
  readonly order: readonly string[]
  readonly removed: readonly string[]
  readonly document: string
}

/** Milliseconds after which a change is reported as late. */
const lateMs = 12_000

const { port, dir } = workerData as GoodProxyData
const host = 'watched.ns.svc.cluster.local'
const latencies: number[] = []
let stopped = false
parentPort?.on('message', () => (stopped = true))

writeFileSync(join(dir, 'watched.yaml'), serviceEntry('watched', '10.200.0.1'))
const connect = () => new XdsClient(port, sidecarNode('10.1.0.1', 'good', 'ns'), true).connect()
let proxy = connect()
const cluster = `outbound|80||${host}`
const has = (address: string) => proxy.resources.get(endpointType)?.get(cluster)?.includes(address) ?? false
/** Whether the proxy has the address, or its stream has ended, so that it will never have it. A proxy that is moved connects again first. */
const isDecided = (address: string) => {
  if (proxy.closed?.details.includes('closed for load balancing')) {
    proxy.close()
    proxy = connect()
    parentPort?.postMessage('moved')
  }
  return has(address) || proxy.closed !== undefined
}
const addressOf = (change: number) => `10.200.${change >> 8}.${change & 255}`
await until('the first configuration', () => has('10.200.0.1'))
parentPort?.postMessage('ready')
for (let change = 2; !stopped; change++) {
  const address = addressOf(change)
  const written = new OwnTime()
  writeFileSync(join(dir, 'watched.yaml'), serviceEntry('watched', address))
  const overdue = setTimeout(() => parentPort?.postMessage(late(change)), lateMs)
  await until(`change ${change}`, () => isDecided(address)).catch(() => undefined)
  clearTimeout(overdue)
  latencies.push(written.ms())
  parentPort?.postMessage('changed')
  if (proxy.closed) break
}
await until('the end of the test', () => stopped)
parentPort?.postMessage({ latencies, closed: proxy.closed } satisfies GoodProxyReport)
proxy.close()

function late(change: number): LateChange {
  const counts = [...proxy.resources].map(([type, held]) => [type, held.size])
  return {
    late: change,
    closed: proxy.closed,
    responses: Object.fromEntries(proxy.responses),
    resources: Object.fromEntries(counts),
    hasCluster: proxy.resources.get(clusterType)?.has(cluster) ?? false,
    hasAddressBefore: has(addressOf(change - 1)),
    order: proxy.order.slice(-12),
    removed: proxy.removed.slice(-12),
    document: readFileSync(join(dir, 'watched.yaml'), 'utf8'),
  }
}
