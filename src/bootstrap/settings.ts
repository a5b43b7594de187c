/** The settings of a bootstrap. */
import type { PairFiles, ServerAddress } from '../../protocols/messages/credentials.ts'
import type { Locality } from '../agent/platform.ts'
import type { WorkloadNode } from './node.ts'
import type { ProxyConfig } from './proxy-config.ts'
import type { StatsChoice } from './stats.ts'

/** How a proxy connects to the discovery service directly. */
export interface DiscoveryPeer {
  readonly address: ServerAddress
  /** The file of the roots that verify the service. Undefined for the roots of the system. */
  readonly roots: string | undefined
  /** The files of a client certificate. Undefined when the agent provides it over SDS. */
  readonly pair: PairFiles | undefined
}

/** The settings of a bootstrap. Plain data. */
export interface BootstrapSettings {
  readonly config: ProxyConfig
  readonly node: WorkloadNode
  readonly locality: Locality
  readonly stats: StatsChoice
  /** `127.0.0.1`, or `::1` for an IPv6-only workload. `wildcard` likewise. */
  readonly localhost: string
  readonly wildcard: string
  /** The wildcard address of the other family, where the kernel has both. */
  readonly otherWildcard: string | undefined
  readonly dnsLookupFamily: 'V4_ONLY' | 'AUTO'
  /** Whether the proxy connects to the discovery service through the agent's socket. */
  readonly isViaAgent: boolean
  /** Whether the proxy uses delta xDS. */
  readonly isDelta: boolean
  /**
   * The token with which the proxy calls discovery by itself instead of with a certificate: exchanged by the token service on `stsPort`, or
   * that of the file.
   */
  readonly callCredentials: { readonly stsPort: number | undefined; readonly tokenFile: string } | undefined
  /** The discovery service, for a proxy that connects to it directly. */
  readonly discovery: DiscoveryPeer
  /** The ports of the bootstrap's own listeners: readiness and metrics. */
  readonly readinessPort: number
  readonly metricsPort: number
  readonly outlierLogPath: string
  readonly statsd: { readonly host: string; readonly port: number } | undefined
}
