/** Trusted proxies in front of a proxy (`gatewayTopology`), whose information about the client is accepted. */
import type { MeshConfig } from '../../config/mesh-config.ts'
import type { Traits } from '../traits.ts'

type Configured = Pick<Traits, 'proxyConfig' | 'type'>

/** Returns the topology of a proxy: its own settings override those of the mesh. */
export const topologyOf = ({ proxyConfig }: Pick<Traits, 'proxyConfig'>, mesh: MeshConfig) => ({
  ...mesh.defaultConfig.gatewayTopology,
  ...proxyConfig.gatewayTopology,
})

/**
 * Whether Envoy's client address can be trusted. A gateway takes it from the connection, or from the configured number of proxies in front
 * of it; a sidecar accepts any `X-Forwarded-For`.
 */
export function trustsForwarded(traits: Configured, mesh: MeshConfig): boolean {
  return traits.type === 'router' || (topologyOf(traits, mesh).numTrustedProxies ?? 0) > 0
}
