/**
 * A worker thread with one well-behaved proxy. It repeatedly changes an endpoint and measures how long each change takes to arrive,
 * independently of the load of the test's thread. Posts `ready`, then a {@link GoodProxyReport} after it receives a message.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { endpointType } from '../../src/xds/type-urls.ts'
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
  /** Whether its stream was ended at any time. */
  readonly closed: boolean
}

const { port, dir } = workerData as GoodProxyData
const host = 'watched.ns.svc.cluster.local'
const latencies: number[] = []
let stopped = false
parentPort?.on('message', () => (stopped = true))

writeFileSync(join(dir, 'watched.yaml'), serviceEntry('watched', '10.200.0.1'))
const proxy = new XdsClient(port, sidecarNode('10.1.0.1', 'good', 'ns'), true).connect()
const has = (address: string) => proxy.resources.get(endpointType)?.get(`outbound|80||${host}`)?.includes(address) ?? false
await until('the first configuration', () => has('10.200.0.1'))
parentPort?.postMessage('ready')
for (let change = 1; !stopped; change++) {
  const address = `10.200.${change >> 8}.${change & 255}`
  const written = new OwnTime()
  writeFileSync(join(dir, 'watched.yaml'), serviceEntry('watched', address))
  await until(`change ${change}`, () => has(address)).catch(() => undefined)
  latencies.push(written.ms())
}
parentPort?.postMessage({ latencies, closed: proxy.closed !== undefined } satisfies GoodProxyReport)
proxy.close()
