/** What `pilot-discovery discovery` was asked to do: its flags, read and checked. */
import type { Level } from './log.ts'

/** Options of the discovery service; durations in milliseconds, addresses as `host:port` or `:port`. */
export interface DiscoveryOptions {
  readonly grpcAddr: string
  /** Where configuration and certificates are served over TLS. */
  readonly secureGRPCAddr: string
  readonly tlsCertFile: string
  readonly tlsKeyFile: string
  readonly caCertFile: string
  readonly httpAddr: string
  readonly monitoringAddr: string
  /** Where ControlZ listens; empty for nowhere. */
  readonly ctrlzAddr: string
  /** Whether the process becomes ready although not all configuration could be read at its first start. */
  readonly allowUnreadableConfig: boolean
  readonly configDir: string
  readonly meshConfig: string
  readonly networksConfig: string
  readonly domain: string
  /** Namespace of this process; empty when no flag says it. */
  readonly namespace: string
  readonly registries: readonly string[]
  /** Policies that are enforced, in the order of their filters. */
  readonly plugins: readonly string[]
  /** Overrules that of the mesh configuration; an empty one does not. */
  readonly trustDomain: string
  readonly keepaliveInterval: number
  readonly keepaliveTimeout: number
  readonly keepaliveMaxServerConnectionAge: number
  readonly writers: number
  /** Notices to log at start: flags without effect yet, what listens in plain text. */
  readonly notices: readonly { readonly level: Exclude<Level, 'none'>; readonly message: string }[]
  /** Flags as given, for the log. */
  readonly given: readonly string[]
}
