/** Metrics of requests that this process makes (docs/metrics.md). */
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, type Registry } from '../runtime/metrics.ts'

/**
 * Counts requests of one type, in metrics whose names begin with `prefix`. `started` is called with whether the request is a retry; what
 * it returns, once with whether it succeeded.
 */
export function outgoingMetrics(registry: Registry, type: string, prefix = ''): { started(retry: boolean): (succeeded: boolean) => void } {
  const labels = { request_type: type }
  const counter = (name: string, help: string) => {
    const made = new Counter({ name: prefix + name, help, labelNames: ['request_type'], registers: [registry] })
    made.inc(labels, 0)
    return made
  }
  const requests = counter('num_outgoing_requests', 'total outgoing requests')
  const failed = counter('num_failed_outgoing_requests', 'failed outgoing requests')
  const retries = counter('num_outgoing_retries', 'outgoing retry requests')
  const latency = counter('outgoing_latency', 'latency of outgoing requests, milliseconds')
  return {
    started(retry) {
      const at = monotonicMs()
      requests.inc(labels)
      if (retry) retries.inc(labels)
      return (succeeded) => {
        latency.inc(labels, monotonicMs() - at)
        if (!succeeded) failed.inc(labels)
      }
    },
  }
}
