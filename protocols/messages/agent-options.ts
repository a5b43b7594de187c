/** Options of the command line of `pilot-agent`. Plain data. */

/** Options of `pilot-agent proxy`. */
export interface ProxyOptions {
  /** The role of the proxy: beside one workload, or a gateway. */
  readonly role: 'sidecar' | 'router'
  /** The number of worker threads of the proxy; 0: set elsewhere. */
  readonly concurrency: number
  /** The DNS domain; empty: that of the namespace. */
  readonly domain: string
  /** The file of the mesh configuration. */
  readonly meshConfig: string
  readonly outlierLogPath: string
  readonly proxyComponentLogLevel: string
  readonly proxyLogLevel: string
  readonly serviceCluster: string
  /** Port of the Security Token Service on the loopback address; 0: disabled. */
  readonly stsPort: number
  readonly templateFile: string
  readonly tokenManagerPlugin: string
  /** Whether the agent logs JSON; the proxy then does, too. */
  readonly logAsJson: boolean
  /** Every flag with its value, sorted by name, for the log. */
  readonly flags: readonly string[]
  /** Flags and arguments without effect that were given, as they were typed. */
  readonly ignored: readonly string[]
}

/** Options of `pilot-agent request`. */
export interface ProxyRequest {
  readonly method: string
  /** Path on the admin port of the proxy, with its query; it begins with a slash. */
  readonly path: string
  readonly body: string | undefined
}

/** Options of `pilot-agent wait`; times in milliseconds. */
export interface WaitSettings {
  readonly url: string
  /** The time between two attempts. */
  readonly periodMs: number
  /** The timeout of one attempt. */
  readonly requestTimeoutMs: number
  /** The timeout of all attempts together. */
  readonly timeoutMs: number
}
