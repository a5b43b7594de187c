/** Metrics of the server of secrets (docs/metrics.md, "Of the agent"). */
import { metricPrefix } from '../../../src/agent/metric-prefix.ts'
import { Counter, Gauge, type Registry } from '../../runtime/metrics.ts'

/** Counts what becomes of secrets. */
export interface SecretMetrics {
  /** A response has left, or its stream was lost before. */
  pushed(isLost: boolean): void
  /** Envoy refused one. */
  refused(): void
  /** A stream was ended because Envoy took nothing. */
  stale(): void
}

/** Declares the metrics of the server of secrets; `streams` says how many streams there are. */
export function secretMetrics(registry: Registry, streams: () => number): SecretMetrics {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name: metricPrefix + name, help, registers })
  const pushes = counter('total_pushes', 'SDS pushes')
  const errors = counter('total_push_errors', 'failed SDS pushes')
  const refusals = counter('total_secret_update_failures', 'dynamic secret update failures reported by the proxy')
  const stale = counter('total_stale_connections', 'stale SDS connections')
  new Gauge({
    name: `${metricPrefix}total_active_connections`,
    help: 'active SDS connections',
    registers,
    collect() {
      this.set(streams())
    },
  })
  return {
    pushed: (isLost) => (isLost ? errors : pushes).inc(),
    refused: () => refusals.inc(),
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
