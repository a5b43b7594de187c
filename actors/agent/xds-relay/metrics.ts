/** Metrics of the relay (docs/metrics.md, "Of the agent"). */
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'

/** Counts connections, requests and responses. */
export interface RelayMetrics {
  /** Called when discovery could not be reached, or refused the stream before it had sent anything for the proxy. */
  discoveryFailed(): void
  /** Called when a stream ends on which discovery had sent something. */
  discoveryEnded(isExpected: boolean): void
  proxyEnded(isExpected: boolean): void
  requests(count: number): void
  responses(count: number): void
}

/** Declares the metrics of the relay. */
export function relayMetrics(registry: MetricRegistry): RelayMetrics {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const ends = (name: string, help: string) => {
    const ended = new Counter({ name, help, labelNames: ['type'], registers })
    return (isExpected: boolean) => ended.inc({ type: isExpected ? 'cancelled' : 'error' })
  }
  const failures = counter('meshd_connection_failures', 'failed connections to discovery')
  const requests = counter('xds_proxy_requests', 'requests of the proxy that were relayed to discovery')
  const responses = counter('xds_proxy_responses', 'responses of discovery that were relayed to the proxy or used by the agent')
  return {
    discoveryFailed: () => failures.inc(),
    discoveryEnded: ends('meshd_connection_terminations', 'streams to discovery that ended'),
    proxyEnded: ends('proxy_connection_terminations', 'streams of the proxy that ended'),
    requests: (count) => requests.inc(count),
    responses: (count) => responses.inc(count),
  }
}
