/** Proxies before a proxy (`gatewayTopology`): what they say of the client is true. */
import type { MeshConfig } from '../../config/mesh-config.ts'
import type { Traits } from '../traits.ts'

type Configured = Pick<Traits, 'proxyConfig' | 'type'>

/** The topology of a proxy: its own settings over those of the mesh. */
export const topologyOf = ({ proxyConfig }: Pick<Traits, 'proxyConfig'>, mesh: MeshConfig) => ({
  ...mesh.defaultConfig.gatewayTopology,
  ...proxyConfig.gatewayTopology,
})

/**
 * Whether Envoy's address of the client is true. A gateway takes it from the connection, or from as many proxies before it as are configured; a
 * sidecar takes whatever `X-Forwarded-For` says.
 */
export function trustsForwarded(traits: Configured, mesh: MeshConfig): boolean {
  return traits.type === 'router' || (topologyOf(traits, mesh).numTrustedProxies ?? 0) > 0
}
