/** The tracer of a bootstrap: the first configured one that stock Envoy supports (docs/agent.md, B15). */
import type { TracingJson } from '../../protocols/gen/envoy/config/trace/v3/http_tracer_pb.js'
import type { ProxyConfig } from './proxy-config.ts'
import { typed } from './typed.ts'

/** The collector that a tracer sends spans to. */
export interface TracerPeer {
  readonly cluster: 'zipkin' | 'datadog_agent'
  readonly address: string
}

/** Returns the collector of the tracer. Undefined without one. */
export function tracerPeer({ tracing: { zipkin, datadog } }: ProxyConfig): TracerPeer | undefined {
  if (zipkin?.address) return { cluster: 'zipkin', address: zipkin.address }
  return datadog?.address ? { cluster: 'datadog_agent', address: datadog.address } : undefined
}

/** Returns why configured tracing has no effect: stock Envoy has no such tracer. Undefined otherwise. */
export function tracerFault(config: ProxyConfig): string | undefined {
  if (tracerPeer(config)) return undefined
  const field = (['lightstep', 'openCensusAgent', 'stackdriver'] as const).find((name) => config.tracing[name])
  if (!field) return undefined
  return `proxy configuration: field tracing.${field}: Envoy no longer has this tracer; no traces are sent. Use tracing.zipkin or tracing.datadog`
}

/** Returns the `tracing` of a bootstrap. Undefined without a tracer. */
export function tracing(config: ProxyConfig, serviceCluster: string): TracingJson | undefined {
  const peer = tracerPeer(config)
  if (peer?.cluster === 'zipkin')
    return {
      http: {
        name: 'envoy.tracers.zipkin',
        typedConfig: typed('envoy.config.trace.v3.ZipkinConfig', {
          collectorCluster: peer.cluster,
          collectorEndpoint: '/api/v2/spans',
          collectorEndpointVersion: 'HTTP_JSON',
          traceId128bit: true,
          sharedSpanContext: false,
        }),
      },
    }
  if (peer)
    return {
      http: {
        name: 'envoy.tracers.datadog',
        typedConfig: typed('envoy.config.trace.v3.DatadogConfig', { collectorCluster: peer.cluster, serviceName: serviceCluster }),
      },
    }
  return undefined
}
