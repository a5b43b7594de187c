/** What is worked out before anything is started: the proxy's settings and its command line. */
import { readFileSync } from 'node:fs'
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { WorkloadProbe } from '../../protocols/messages/status.ts'
import type { DiscoverySettings } from '../../src/agent/connections.ts'
import type { AgentFeatures } from '../../src/config/agent-features.ts'
import type { StatusProxy } from '../../src/health/settings.ts'
import type { Drain, ProxyCommand } from './proxy-process/proxy-process.ts'

/** The proxy that is to be started. */
export interface PreparedProxy {
  readonly isSidecar: boolean
  readonly discovery: DiscoverySettings
  readonly command: ProxyCommand
  readonly drain: Drain
  readonly status: StatusProxy
}

/** Provisional: the few settings of `PROXY_CONFIG`, as JSON, that a given bootstrap needs. */
export function prepareProxy(
  options: ProxyOptions,
  features: AgentFeatures,
  environment: Readonly<Record<string, string | undefined>>,
): PreparedProxy {
  const given = JSON.parse(environment.PROXY_CONFIG ?? '{}') as Record<string, string | undefined> & { readonly readinessProbe?: WorkloadProbe }
  const {
    discoveryAddress = 'meshd.mesh-system.svc:15012',
    customConfigFile = '',
    binaryPath = '/usr/local/bin/envoy',
    controlPlaneAuthPolicy = 'MUTUAL_TLS',
  } = given
  readFileSync(customConfigFile)
  const { TERMINATION_DRAIN_DURATION_SECONDS: seconds } = features
  const adminPort = Number(given.proxyAdminPort ?? 15_000)
  return {
    isSidecar: options.role === 'sidecar',
    discovery: { discoveryAddress, controlPlaneAuthPolicy, proxyMetadata: {} },
    command: { binary: binaryPath, args: ['-c', customConfigFile, '-l', options.proxyLogLevel] },
    drain: { adminPort, inboundOnly: options.role === 'sidecar', durationMs: seconds * 1000 },
    status: {
      role: options.role,
      isIpv6Only: false,
      statusPort: Number(given.statusPort ?? 15_020),
      proxyAdminPort: adminPort,
      readinessProbe: given.readinessProbe,
    },
  }
}
