/** The ports of proxies and agents, which no service may lead to on the machine of its caller (docs/resources.md, E8). */
import type { MeshConfig } from './mesh-config.ts'

/**
 * Ports of a proxy and its agent unless they are configured otherwise: administration, outbound and inbound connections, debug pages,
 * tunnels, status, health, DNS, metrics (docs/resources.md, E8). Some of the servers on these ports trust programs of their own machine.
 */
export const ownPorts: ReadonlySet<number> = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090])

/** The ports of a proxy and its agent, as the mesh configures them: {@link ownPorts}, and those that it names. */
export function proxyPorts({ defaultConfig, proxyListenPort, proxyHttpPort }: MeshConfig): Set<number> {
  const { proxyAdminPort, statusPort } = defaultConfig
  const named = [proxyAdminPort, statusPort, proxyListenPort, proxyHttpPort].filter((port) => port !== undefined && port !== 0)
  return new Set([...ownPorts, ...(named as number[])])
}
