/** Metrics of an XDS writer (docs/metrics.md). Histogram buckets are finer below 100 ms than those of the reference. */

import { versionText } from '../../../src/model/proxy.ts'
import { codeName } from '../../../src/model/status-codes.ts'
import type { Outcome } from '../../../src/xds/stream/session.ts'
import { clusterType, endpointType, listenerType, routeType, shortType } from '../../../src/xds/type-urls.ts'
import { Counter, Gauge, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'
import { mostFrequent } from '../../runtime/most-frequent.ts'
import type { Connection } from './connection.ts'
import type { SlowConnection } from './slow-connections.ts'

const fine = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3, 5, 10, 20, 30]

/** Maximum length of a node id in a label, in characters; node ids may have 2,048. */
const longestLabel = 256

/** Metrics of the response cache (`PILOT_XDS_CACHE_STATS`). */
export function cacheMetrics(registry: MetricRegistry, size: () => number): { read(hit: boolean): void; evicted(): void } {
  const registers = [registry]
  const reads = new Counter({ name: 'xds_cache_reads', help: 'XDS cache reads', labelNames: ['type'], registers })
  const evictions = new Counter({ name: 'xds_cache_evictions', help: 'XDS cache evictions', registers })
  new Gauge({
    name: 'xds_cache_size',
    help: 'current XDS cache size',
    registers,
    collect() {
      this.set(size())
    },
  })
  return { read: (hit) => reads.inc({ type: hit ? 'hit' : 'miss' }), evicted: () => evictions.inc() }
}

/** Gauges of the present state of a writer's connections. */
function connectionGauges(registry: MetricRegistry, connections: ReadonlyMap<string, Connection>, slow: () => readonly SlowConnection[]): void {
  const registers = [registry]
  for (const type of [clusterType, endpointType, listenerType, routeType])
    new Gauge({
      name: `pilot_xds_${shortType(type)}_reject`,
      help: `${shortType(type).toUpperCase()} configs rejected`,
      labelNames: ['node', 'err'],
      registers,
      // Computed from the present NACKs, so that no series outlives its connection.
      collect() {
        this.reset()
        for (const { node, session } of connections.values()) {
          const refused = session.watches.get(type)?.lastError
          if (node && refused) this.set({ node: node.id.slice(0, longestLabel), err: codeName(refused.code) }, 1)
        }
      },
    })
  new Gauge({
    name: 'pilot_xds',
    help: 'endpoints connected using XDS',
    labelNames: ['version'],
    registers,
    collect() {
      this.reset()
      const versions = [...connections.values()].map(({ node }) => versionText(node?.version) ?? 'unknown')
      for (const [version, number] of mostFrequent(versions)) this.set({ version }, number)
    },
  })
  const slowGauge = (name: string, help: string, counts: (connection: SlowConnection) => boolean) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(slow().filter(counts).length)
      },
    })
  slowGauge('pilot_xds_standing_still', 'proxies that currently read no data of a response', ({ stillMs }) => stillMs > 0)
  slowGauge(
    'pilot_xds_permits_released_early',
    'responses that are sent without a permit of PILOT_PUSH_THROTTLE, because their proxy is slow',
    ({ releasedEarly }) => releasedEarly,
  )
}

/** The metrics of a writer. */
export type WriterMetrics = ReturnType<typeof writerMetrics>

/** Registers the metrics of a writer and returns the functions that record events. */
export function writerMetrics(registry: MetricRegistry, connections: ReadonlyMap<string, Connection>, slow: () => readonly SlowConnection[]) {
  const registers = [registry]
  connectionGauges(registry, connections, slow)
  const counter = (name: string, help: string, labelNames: string[] = []) => new Counter({ name, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[] = []) => new Histogram({ name, help, labelNames, buckets: fine, registers })
  const totalRejects = counter('pilot_total_xds_rejects', 'XDS responses rejected by the proxy', ['type'])
  const expiredNonce = counter('pilot_xds_expired_nonce', 'XDS requests with an expired nonce', ['type'])
  const pushes = counter('pilot_xds_pushes', 'builds and send errors for lds, rds, cds and eds', ['type'])
  const bytes = counter('pilot_xds_sent_bytes_total', 'bytes of resources sent', ['type'])
  const refusedProxies = counter('pilot_xds_refused_proxies_total', 'streams of proxies refused because of PILOT_XDS_MAX_PROXIES')
  const spread = counter('pilot_xds_spread_connections_total', 'connections ended because other replicas serve fewer proxies')
  const writeTimeout = counter('pilot_xds_write_timeout', 'XDS response write timeouts')
  const delayed = counter('pilot_xds_delayed_pushes_total', 'delayed XDS pushes', ['type'])
  const delayTimeouts = counter('pilot_xds_delayed_push_timeouts_total', 'delayed XDS pushes that timed out', ['type'])
  const pushTime = histogram('pilot_xds_push_time', 'seconds to push lds, rds, cds and eds', ['type'])
  const sendTime = histogram('pilot_xds_send_time', 'seconds to send generated configuration')
  return {
    queueTime: histogram('pilot_proxy_queue_time', 'seconds a proxy waits in the push queue before being dequeued'),
    convergence: histogram('pilot_proxy_convergence_time', 'seconds between a config change and a proxy receiving all required configuration'),
    /** Counts a request by its outcome. */
    request(typeUrl: string, outcome: Outcome): void {
      const type = shortType(typeUrl)
      if (outcome === 'stale') expiredNonce.inc({ type })
      if (outcome === 'nack') totalRejects.inc({ type })
    },
    /** Counts a push that flow control held back, or, with `timedOut`, one that is sent after all without the ACK. */
    held(typeUrl: string, timedOut: boolean): void {
      const counted = timedOut ? delayTimeouts : delayed
      counted.inc({ type: shortType(typeUrl) })
    },
    /** Counts a stream that was refused because the process serves as many proxies as it may. */
    full(): void {
      refusedProxies.inc()
    },
    /** Counts connections that were ended so that they come back at another replica. */
    spread(count: number): void {
      spread.inc(count)
    },
    /** Counts a stream that was ended because it made no progress. */
    stoodStill(): void {
      writeTimeout.inc()
    },
    /** Counts a response that was sent, or that failed. */
    sent(typeUrl: string, seconds: number, length: number, failed: boolean): void {
      const type = shortType(typeUrl)
      pushes.inc({ type: failed ? `${type}_senderr` : type })
      bytes.inc({ type }, length)
      pushTime.observe({ type }, seconds)
      sendTime.observe(seconds)
    },
  }
}
