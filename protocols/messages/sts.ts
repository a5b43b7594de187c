/** What the token service of the agent is told when it starts, and what it answers. Plain data; tokens only in the answer to `exchange`. */

/** Where a token of the workload is exchanged for one of the cloud (docs/agent.md, T4). */
export interface CloudExchange {
  readonly federatedUrl: string
  readonly accessUrl: string
  readonly audience: string
}

/** The token service. */
export interface TokenServiceConfig {
  /** Port on this machine; 0 for one that the kernel chooses. Nothing is listened on when this is undefined. */
  readonly port: number | undefined
  readonly isIpv6Only: boolean
  /** How tokens are exchanged, or why they cannot be. */
  readonly plugin: CloudExchange | { readonly fault: string }
}

/** The answer to `state`. */
export interface TokenServiceState {
  /** The port that is listened on; undefined when none is. */
  readonly port: number | undefined
}

/** The answer to `exchange`: the token that the subject's was exchanged for. */
export interface ExchangedToken {
  readonly token: string
  /** How long it is good for, in seconds. */
  readonly expiresInSeconds: number
}
