/** Configuration and state of the agent's status server, and the questions that it asks. Plain data. */

/** A header that a probe sends. */
export interface ProbeHeader {
  readonly name: string
  readonly value?: string
}

/** A probe by an HTTP request. */
export interface HttpProbe {
  readonly port: number
  /** The path with its query, by default `/`. A missing leading `/` is added. */
  readonly path?: string
  /** `http` or `https` in any case, by default `http`. Certificates are not verified. */
  readonly scheme?: string
  /** The host to connect to, by default `localhost`; for the probe of a workload only. */
  readonly host?: string
  readonly httpHeaders?: readonly ProbeHeader[]
}

/** The orchestrator's probe of a container before it was rewritten (docs/agent.md, H7). Exactly one of the three kinds is set. */
export interface ApplicationProbe {
  readonly httpGet?: HttpProbe
  readonly tcpSocket?: { readonly port: number }
  /** A call of `grpc.health.v1.Health/Check` in plain text, for a service or for the server as a whole. */
  readonly grpc?: { readonly port: number; readonly service?: string }
  /** The timeout in seconds; 0 or undefined: 1, the default of the orchestrator. */
  readonly timeoutSeconds?: number
}

/** The health probe of the agent's workload: `readinessProbe` of the proxy's configuration. Exactly one of the three kinds is set. */
export interface WorkloadProbe {
  readonly initialDelaySeconds?: number
  readonly timeoutSeconds?: number
  readonly periodSeconds?: number
  readonly successThreshold?: number
  readonly failureThreshold?: number
  readonly httpGet?: HttpProbe
  readonly tcpSocket?: { readonly host?: string; readonly port: number }
  readonly exec?: { readonly command: readonly string[] }
}

/** The application's own metrics on this machine. */
export interface MetricsTarget {
  readonly port: number
  /** With its query. */
  readonly path: string
}

/** Configuration of the status server. */
export interface StatusConfig {
  /** Port on all interfaces; 0: chosen by the kernel; undefined: the server does not listen. */
  readonly port: number | undefined
  /** Port of the proxy's admin interface on this machine. */
  readonly adminPort: number
  /** Port of the proxy's own metrics on this machine. */
  readonly prometheusPort: number
  /** Whether this machine has no IPv4 address: then `::1` is tried before `127.0.0.1`. */
  readonly isIpv6Only: boolean
  /** The application's metrics; undefined: they are not merged. */
  readonly application: MetricsTarget | undefined
  /** Probes by the path at which they are served, `/app-health/<container>/readyz`. */
  readonly probes: Readonly<Record<string, ApplicationProbe>>
  /** Undefined: the workload's health is not reported. */
  readonly workloadProbe: WorkloadProbe | undefined
}

/** The answer to `state`. */
export interface StatusState {
  /** The port that the server listens on; undefined: none. */
  readonly port: number | undefined
  /** Whether the proxy has been ready once. */
  readonly ready: boolean
  /** The reason why the proxy was not ready at the last check; empty if it was, or before the first check. */
  readonly reason: string
  /** The last reported health of the workload; undefined before it was healthy once. */
  readonly healthy: boolean | undefined
}

/** Names of the questions that the status server asks its supervisor. */
export const statusAsks = {
  /** Takes an {@link AgentPage} and returns the metrics of all actors and of the process: {@link AgentMetrics}. */
  metrics: 'metrics',
  /** Ends the agent as SIGTERM does; the reason is logged. Answered at once. */
  quit: 'quit',
  /** Returns the process id of the proxy that the agent started; undefined before the start. */
  proxy: 'proxy',
} as const

/** The page of metrics that is asked for: the agent's own in one of the formats, or its part of the page that it shares with the proxy. */
export type AgentPage = 'text' | 'openmetrics' | 'shared'

/** The answer to `metrics`. */
export interface AgentMetrics {
  readonly text: string
  /** The number of actors that did not answer in time; their previous answers are included. */
  readonly silent: number
}
