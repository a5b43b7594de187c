/** What the environment and the proxy's configuration say of the status server. */
import type { StatusConfig, WorkloadProbe } from '../../protocols/messages/status.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { readApplicationProbes, readMetricsTarget } from './probe-documents.ts'

/** What the status server is told of its proxy. */
export interface StatusProxy {
  readonly role: 'sidecar' | 'router'
  readonly isIpv6Only: boolean
  /** 0 for no server. */
  readonly statusPort: number
  readonly proxyAdminPort: number
  readonly readinessProbe?: WorkloadProbe
}

/** Reads the environment. Throws an Error that names the variable, the field and the reason. */
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
