/** Metrics of the server of secrets (docs/metrics.md, "Of the agent"). */
import { metricPrefix } from '../../../src/agent/metric-prefix.ts'
import { Counter, Gauge, Histogram, type Registry } from '../../runtime/metrics.ts'

/** Counts what becomes of secrets. */
export interface SecretMetrics {
  /** A response has left so many seconds after it was made, or its stream was lost before. */
  pushed(isLost: boolean, seconds: number): void
  /** Envoy refused one. */
  refused(): void
  /** A request answered another response than the last. */
  expired(): void
  /** A stream was ended because Envoy took nothing. */
  stale(): void
}

/** Label of the metrics that discovery has too, by the type of its resources. */
const type = 'sds'
/** Upper bounds in seconds. */
const buckets = [0.01, 0.1, 1, 3, 5, 10, 20, 30]

/** Declares the metrics of the server of secrets; `versions` gives what each open stream tells of Envoy's version. */
export function secretMetrics(registry: Registry, versions: () => readonly string[]): SecretMetrics {
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Counter({ name: metricPrefix + name, help, labelNames, registers })
  const pushes = counter('total_pushes', 'SDS pushes')
  const errors = counter('total_push_errors', 'failed SDS pushes')
  const refusals = counter('total_secret_update_failures', 'dynamic secret update failures reported by the proxy')
  const stale = counter('total_stale_connections', 'stale SDS connections')
  const typedPushes = counter('pilot_xds_pushes', 'builds and send errors of secrets', ['type'])
  const rejects = counter('pilot_total_xds_rejects', 'responses rejected by the proxy', ['type'])
  const expired = counter('pilot_xds_expired_nonce', 'requests with an expired nonce', ['type'])
  const pushTime = new Histogram({
    name: `${metricPrefix}pilot_xds_push_time`,
    help: 'seconds to push secrets',
    labelNames: ['type'],
    buckets,
    registers,
  })
  new Gauge({
    name: `${metricPrefix}total_active_connections`,
    help: 'active SDS connections',
    registers,
    collect() {
      this.set(versions().length)
    },
  })
  new Gauge({
    name: `${metricPrefix}pilot_xds`,
    help: 'streams of secrets by the version of the proxy',
    labelNames: ['version'],
    registers,
    collect() {
      this.reset()
      for (const version of versions()) this.inc({ version })
    },
  })
  return {
    pushed(isLost, seconds) {
      const counted = isLost ? errors : pushes
      counted.inc()
      typedPushes.inc({ type: isLost ? `${type}_senderr` : type })
      if (!isLost) pushTime.observe({ type }, seconds)
    },
    refused() {
      refusals.inc()
      rejects.inc({ type })
    },
    expired: () => expired.inc({ type }),
    stale: () => stale.inc(),
  }
}

/** Counts what becomes of secrets in files. */
export interface FileMetrics {
  /** Files could not be read, used or written. */
  failed(): void
  /** A directory could not be watched. */
  unwatchable(): void
}

/** Declares the metrics of files. */
export function fileMetrics(registry: Registry): FileMetrics {
  const counter = (name: string, help: string) => new Counter({ name: metricPrefix + name, help, registers: [registry] })
  const failures = counter('num_file_secret_failures_total', 'failures of secrets in files: files that could not be read, used or written')
  const watches = counter('num_file_watcher_failures_total', 'directories of secrets that could not be watched')
  return { failed: () => failures.inc(), unwatchable: () => watches.inc() }
}
