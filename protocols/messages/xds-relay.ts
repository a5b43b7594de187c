/** Configuration and state of the agent's relay between Envoy and discovery. Plain data, without keys and tokens. */
import type { ServerConnection } from './credentials.ts'

/** Configuration of the relay. */
export interface XdsRelayConfig {
  /** Path of the Unix socket on which Envoy requests its configuration. */
  readonly socket: string
  /** Whether its directory may be a volume of an orchestrator, which other users could write to (docs/certificates.md, S1). */
  readonly allowVolumes: boolean
  readonly discovery: ServerConnection
  /** Metadata of each stream to discovery besides the token; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the token is exchanged for a token of the cloud before it is sent. */
  readonly exchangesToken: boolean
  /** How the last configuration of the proxy is kept; undefined if it is not kept. */
  readonly keeps: KeepingConfig | undefined
  /** Whether the relay subscribes to the table of names for the agent's DNS server. */
  readonly asksNameTable: boolean
  /** Whether the relay subscribes to the roots of the mesh for the workload's secrets. */
  readonly asksTrust: boolean
}

/** How the last configuration of the proxy is kept (docs/agent.md, X9). Times in milliseconds. */
export interface KeepingConfig {
  readonly file: string
  /** The minimum time between two writes of the file. */
  readonly everyMs: number
  /** How long discovery may be unreachable before a starting proxy is given the kept configuration. */
  readonly fallbackAfterMs: number
}

/** The answer to `state`. */
export interface XdsRelayState {
  /**
   * `none`: no proxy is connected; `waiting`: a proxy is, and discovery has not been reached; `kept`: the proxy was given the kept
   * configuration; `open`: both are connected; `served`: discovery has sent a response to the proxy.
   */
  readonly stream: 'none' | 'waiting' | 'kept' | 'open' | 'served'
  /** The number of consecutive attempts that failed or whose stream ended early. */
  readonly failures: number
  /** The reason why the last attempt or stream ended unexpectedly; undefined once discovery has responded. */
  readonly fault: string | undefined
}
