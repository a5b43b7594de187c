/** What the relay of the agent, between Envoy and discovery, is told when it starts and answers. Plain data, without keys and tokens. */
import type { ServerConnection } from './credentials.ts'

/** The relay. */
export interface XdsRelayConfig {
  /** Path of the unix socket on which Envoy asks for its configuration. */
  readonly socket: string
  readonly discovery: ServerConnection
  /** Metadata of each stream to discovery beside the token; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the token is exchanged for one of the cloud before it is sent. */
  readonly exchangesToken: boolean
  /** How the last configuration of the proxy is kept; undefined when it is not. */
  readonly keeps: KeepingConfig | undefined
  /** Whether the table of names is asked for, for the DNS server of the agent. */
  readonly asksNameTable: boolean
}

/** How the last configuration of the proxy is kept (docs/agent.md, X9). Times in milliseconds. */
export interface KeepingConfig {
  readonly file: string
  /** Shortest time between two writings. */
  readonly everyMs: number
  /** How long discovery may be out of reach before a proxy that starts is given what was kept. */
  readonly patienceMs: number
}

/** The answer to `state`. */
export interface XdsRelayState {
  /** Nobody asks; a proxy asks and discovery was not reached yet; it has what was kept; both are connected; discovery has sent something for the proxy. */
  readonly stream: 'none' | 'waiting' | 'kept' | 'open' | 'served'
  /** Attempts in a row that came to nothing, or that did not last. */
  readonly failures: number
  /** Why the last attempt or stream has ended, if it was not expected; undefined once discovery has answered. */
  readonly fault: string | undefined
}
