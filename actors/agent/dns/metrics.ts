/** Metrics of the DNS server (docs/metrics.md, "Of the agent"). */
import { Counter, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'

/** Counts queries and their outcomes. */
export interface DnsMetrics {
  /** Called for each query. */
  asked(): void
  /**
   * Called when a query is forwarded to the system's servers. The returned function is called with the duration in seconds and whether a
   * server answered.
   */
  forwarded(): (seconds: number, isAnswered: boolean) => void
}

/** Declares the metrics of the DNS server. */
export function dnsMetrics(registry: MetricRegistry): DnsMetrics {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const requests = counter('dns_requests_total', 'DNS queries received')
  const upstream = counter('dns_upstream_requests_total', 'DNS queries forwarded to the servers of the system')
  const failures = counter('dns_upstream_failures_total', 'forwarded DNS queries that no server of the system answered')
  const duration = new Histogram({
    name: 'dns_upstream_request_duration_seconds',
    help: 'time until a server of the system answered, in seconds',
    buckets: [0.001, 0.005, 0.01, 0.1, 1, 5],
    registers,
  })
  return {
    asked: () => requests.inc(),
    forwarded() {
      upstream.inc()
      return (seconds, isAnswered) => {
        if (isAnswered) duration.observe(seconds)
        else failures.inc()
      }
    },
  }
}
