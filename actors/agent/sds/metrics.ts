/** Metrics of the SDS server (docs/metrics.md, "Of the agent"). */
import { Counter, Gauge, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'
import { mostFrequent } from '../../runtime/most-frequent.ts'

/** Counts events of the SDS server. */
export interface SecretMetrics {
  /** Called when a response was sent, with the seconds since it was made, or when its stream was lost first. */
  pushed(isLost: boolean, seconds: number): void
  /** Called for a NACK. */
  refused(): void
  /** Called for a request whose nonce is not that of the last response. */
  expired(): void
  /** Called when a stream was ended because Envoy did not read for the send timeout. */
  stale(): void
}

/** The value of the label `type`, as in discovery's metrics of the same names. */
const type = 'sds'
/** Upper bounds of the histogram in seconds. */
const buckets = [0.01, 0.1, 1, 3, 5, 10, 20, 30]

/** Declares the metrics of the SDS server. `versions` returns the Envoy version of each open stream. */
export function secretMetrics(registry: MetricRegistry, versions: () => readonly string[]): SecretMetrics {
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: readonly string[] = []) => new Counter({ name, help, labelNames, registers })
  const pushes = counter('total_pushes', 'SDS pushes')
  const errors = counter('total_push_errors', 'failed SDS pushes')
  const writeTimeouts = counter('pilot_xds_write_timeout', 'streams of secrets that made no progress')
  const refusals = counter('total_secret_update_failures', 'dynamic secret update failures reported by the proxy')
  const stale = counter('total_stale_connections', 'stale SDS connections')
  const typedPushes = counter('pilot_xds_pushes', 'builds and send errors of secrets', ['type'])
  const rejects = counter('pilot_total_xds_rejects', 'responses rejected by the proxy', ['type'])
  const expired = counter('pilot_xds_expired_nonce', 'requests with an expired nonce', ['type'])
  const pushTime = new Histogram({ name: 'pilot_xds_push_time', help: 'seconds to push secrets', labelNames: ['type'], buckets, registers })
  const sendTime = new Histogram({ name: 'pilot_xds_send_time', help: 'seconds to send secrets', buckets, registers })
  new Gauge({
    name: 'total_active_connections',
    help: 'active SDS connections',
    registers,
    collect() {
      this.set(versions().length)
    },
  })
  new Gauge({
    name: 'pilot_xds',
    help: 'streams of secrets by the version of the proxy',
    labelNames: ['version'],
    registers,
    collect() {
      this.reset()
      for (const [version, number] of mostFrequent(versions())) this.set({ version }, number)
    },
  })
  return {
    pushed(isLost, seconds) {
      const counted = isLost ? errors : pushes
      counted.inc()
      typedPushes.inc({ type: isLost ? `${type}_senderr` : type })
      if (isLost) return
      pushTime.observe({ type }, seconds)
      sendTime.observe(seconds)
    },
    refused() {
      refusals.inc()
      rejects.inc({ type })
    },
    expired: () => expired.inc({ type }),
    stale() {
      stale.inc()
      writeTimeouts.inc()
    },
  }
}

/** Counts failures of secret files. */
export interface FileMetrics {
  /** Called when files could not be read, used or written. */
  failed(): void
  /** Called when a directory could not be watched. */
  unwatchable(): void
}

/** Declares the metrics of secret files. */
export function fileMetrics(registry: MetricRegistry): FileMetrics {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] })
  const failures = counter('num_file_secret_failures_total', 'failures of secrets in files: files that could not be read, used or written')
  const watches = counter('num_file_watcher_failures_total', 'directories of secrets that could not be watched')
  return { failed: () => failures.inc(), unwatchable: () => watches.inc() }
}
