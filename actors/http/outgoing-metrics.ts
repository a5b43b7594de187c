/** Metrics of HTTP requests that this process makes (docs/metrics.md). */
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, type MetricRegistry } from '../runtime/metrics.ts'

/**
 * Counts requests of one type. `started` takes whether the request is a retry; the function that it returns must be called once, with
 * whether the request succeeded.
 */
export interface OutgoingRequests {
  started(retry: boolean): (succeeded: boolean) => void
}

/** Registers the metrics of an actor's requests and returns a function that counts the requests of a type. */
export function outgoingMetrics(registry: MetricRegistry): (type: string) => OutgoingRequests {
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames: ['request_type'], registers: [registry] })
  const requests = counter('num_outgoing_requests', 'total outgoing requests')
  const failed = counter('num_failed_outgoing_requests', 'failed outgoing requests')
  const retries = counter('num_outgoing_retries', 'outgoing retry requests')
  const latency = counter('outgoing_latency', 'latency of outgoing requests, milliseconds')
  return (type) => {
    const labels = { request_type: type }
    for (const each of [requests, failed, retries, latency]) each.inc(labels, 0)
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
}
