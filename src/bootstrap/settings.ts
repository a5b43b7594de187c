/** What a bootstrap is made from. */
import type { PairFiles, ServerAddress } from '../../protocols/messages/credentials.ts'
import type { WorkloadNode } from './node.ts'
import type { Locality } from './platform.ts'
import type { ProxyConfig } from './proxy-config.ts'
import type { StatsChoice } from './stats.ts'

/** How a proxy reaches the discovery service by itself. */
export interface DiscoveryPeer {
  readonly address: ServerAddress
  /** File of the roots that verify it; undefined for those of the system. */
  readonly roots: string | undefined
  /** Files of a client certificate; undefined when it comes from the agent. */
  readonly pair: PairFiles | undefined
}

/** What a bootstrap is made from. Plain data. */
export interface BootstrapSettings {
  readonly config: ProxyConfig
  readonly node: WorkloadNode
  readonly locality: Locality
  readonly stats: StatsChoice
  /** `127.0.0.1`, or `::1` for a workload of IPv6 alone; the wildcard address alike. */
  readonly localhost: string
  readonly wildcard: string
  readonly dnsLookupFamily: 'V4_ONLY' | 'AUTO'
  /** Whether the proxy reaches the discovery service through the socket of the agent. */
  readonly isViaAgent: boolean
  /** Whether it asks for differences instead of the whole state. */
  readonly isDelta: boolean
  /** Where tokens for the discovery service come from, when they are to be used instead of certificates. */
  readonly callCredentials: { readonly stsPort: number; readonly tokenFile: string } | undefined
  /** The discovery service, for a proxy that reaches it by itself. */
  readonly discovery: DiscoveryPeer
  /** Ports of the proxy's own listeners: readiness and metrics. */
  readonly readinessPort: number
  readonly metricsPort: number
  readonly outlierLogPath: string
  readonly statsd: { readonly host: string; readonly port: number } | undefined
}
