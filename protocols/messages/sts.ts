/** Configuration and state of the agent's token service. Plain data; only the answer to `exchange` contains a token. */

/** Where a token of the workload is exchanged for one of the cloud (docs/agent.md, T4). */
export interface CloudExchange {
  readonly federatedUrl: string
  readonly accessUrl: string
  readonly audience: string
}

/** Configuration of the token service. */
export interface TokenServiceConfig {
  /** Port on this machine; 0: chosen by the kernel; undefined: the service does not listen. */
  readonly port: number | undefined
  readonly isIpv6Only: boolean
  /** How tokens are exchanged, or the reason why they cannot be. */
  readonly plugin: CloudExchange | { readonly fault: string }
}

/** The answer to `state`. */
export interface TokenServiceState {
  /** The port that the service listens on; undefined: none. */
  readonly port: number | undefined
}

/** The answer to `exchange`: the token issued in exchange for the subject token. */
export interface ExchangedToken {
  readonly token: string
  /** The lifetime in seconds. */
  readonly expiresInSeconds: number
}
