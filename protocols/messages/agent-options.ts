/** What the command line of `pilot-agent` asks for. Plain data. */

/** Of `pilot-agent proxy`. */
export interface ProxyOptions {
  /** What the proxy is: beside one workload, or a gateway. */
  readonly role: 'sidecar' | 'router'
  /** Worker threads of the proxy; 0 where other settings say it. */
  readonly concurrency: number
  /** DNS domain; empty for that of the namespace. */
  readonly domain: string
  /** File of the mesh configuration. */
  readonly meshConfig: string
  readonly outlierLogPath: string
  readonly proxyComponentLogLevel: string
  readonly proxyLogLevel: string
  readonly serviceCluster: string
  /** Port of the Security Token Service on the loopback address; 0 for none. */
  readonly stsPort: number
  readonly templateFile: string
  readonly tokenManagerPlugin: string
  /** Whether the log is JSON: the proxy's then is, too. */
  readonly logAsJson: boolean
  /** Every flag with its value, as the log says it, sorted by name. */
  readonly flags: readonly string[]
  /** Flags and arguments that were given and have no effect, as they were typed. */
  readonly ignored: readonly string[]
}

/** Of `pilot-agent request`. */
export interface ProxyRequest {
  readonly method: string
  /** Path on the admin port of the proxy, with its query; it begins with a slash. */
  readonly path: string
  readonly body: string | undefined
}

/** Of `pilot-agent wait`; times in milliseconds. */
export interface WaitSettings {
  readonly url: string
  /** Between two attempts. */
  readonly periodMs: number
  /** For the answer to one attempt. */
  readonly requestTimeoutMs: number
  /** For all attempts. */
  readonly timeoutMs: number
}
