/** Reads the settings of the status server from the environment and the proxy's configuration. */
import type { StatusConfig, WorkloadProbe } from '../../protocols/messages/status.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { readApplicationProbes, readMetricsTarget } from './probe-documents.ts'

/** The facts of the proxy that the status server depends on. */
export interface StatusProxy {
  readonly role: 'sidecar' | 'router'
  readonly isIpv6Only: boolean
  /** The port of the status server; 0 when there is none. */
  readonly statusPort: number
  readonly proxyAdminPort: number
  readonly readinessProbe?: WorkloadProbe
}

/** Returns the configuration of the status server. Throws an Error that names the variable, the field and the reason. */
export function statusConfig(features: AgentFeatures, proxy: StatusProxy): StatusConfig {
  const read = <T>(variable: 'MESH_ORCH_APP_PROBERS' | 'MESH_METRICS_ANNOTATIONS', from: (document: string) => T): T => {
    try {
      return from(features[variable])
    } catch (error) {
      throw new Error(`environment variable ${variable}: ${(error as Error).message}`)
    }
  }
  const application = read('MESH_METRICS_ANNOTATIONS', (document) => readMetricsTarget(document, proxy.statusPort))
  return {
    port: proxy.statusPort === 0 ? undefined : proxy.statusPort,
    adminPort: proxy.proxyAdminPort,
    prometheusPort: features.PROXY_PROMETHEUS_PORT,
    isIpv6Only: proxy.isIpv6Only,
    application: proxy.role === 'sidecar' ? application : undefined,
    probes: read('MESH_ORCH_APP_PROBERS', readApplicationProbes),
    workloadProbe: proxy.readinessProbe,
  }
}
