/** What the status server of the agent is told when it starts, what it answers and what it asks. Plain data. */

/** A header that a probe sends. */
export interface ProbeHeader {
  readonly name: string
  readonly value?: string
}

/** A probe by an HTTP request. */
export interface HttpProbe {
  readonly port: number
  /** With its query; `/` when it is left out. A leading `/` is added. */
  readonly path?: string
  /** `http` or `https` in any case; `http` when it is left out. Certificates are not verified. */
  readonly scheme?: string
  /** Host that is connected to, by the probe of a workload alone; `localhost` when it is left out. */
  readonly host?: string
  readonly httpHeaders?: readonly ProbeHeader[]
}

/** What the orchestrator's probe of a container was before it was rewritten (docs/agent.md, H7). Exactly one way is given. */
export interface ApplicationProbe {
  readonly httpGet?: HttpProbe
  readonly tcpSocket?: { readonly port: number }
  /** A call of `grpc.health.v1.Health/Check` in plain text, for a service or for the server as a whole. */
  readonly grpc?: { readonly port: number; readonly service?: string }
  /** Longest time in seconds; none when it is left out or 0. */
  readonly timeoutSeconds?: number
}

/** How the agent finds out whether its workload is healthy: `readinessProbe` of the proxy's configuration. Exactly one way is given. */
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

/** Where the application's own metrics are, on this machine. */
export interface MetricsTarget {
  readonly port: number
  /** With its query. */
  readonly path: string
}

/** The status server. */
export interface StatusConfig {
  /** Port on all interfaces; 0 for one that the kernel chooses. Nothing is listened on when this is undefined. */
  readonly port: number | undefined
  /** Port of the proxy's admin interface on this machine. */
  readonly adminPort: number
  /** Port at which the proxy serves its own metrics on this machine. */
  readonly prometheusPort: number
  /** Whether this machine has no IPv4: then `::1` is tried before `127.0.0.1`. */
  readonly isIpv6Only: boolean
  /** Where the application's metrics are; undefined when they are not merged. */
  readonly application: MetricsTarget | undefined
  /** By the path at which they are served, `/app-health/<container>/readyz`. */
  readonly probes: Readonly<Record<string, ApplicationProbe>>
  /** Undefined when the workload's health is not told. */
  readonly workloadProbe: WorkloadProbe | undefined
}

/** The answer to `state`. */
export interface StatusState {
  /** The port that is listened on; undefined while none is. */
  readonly port: number | undefined
  /** Whether the proxy has been ready once. */
  readonly ready: boolean
  /** Why the proxy was not ready when it was looked at last; empty when it is, or nobody has asked yet. */
  readonly reason: string
  /** What was told of the workload's health last; undefined before it was healthy once. */
  readonly healthy: boolean | undefined
}

/** Names of the questions that the status server asks its supervisor. */
export const statusAsks = {
  /** The metrics of all actors and of the process in the text format: {@link AgentMetrics}. */
  metrics: 'metrics',
  /** Ends the agent as SIGTERM does, for a reason that is said in the log. Answered at once. */
  quit: 'quit',
} as const

/** The answer to `metrics`. */
export interface AgentMetrics {
  readonly text: string
  /** Actors that did not answer; their last answers count. */
  readonly silent: number
}
