/**
 * Addresses on which sidecars listen, and those among them that the proxy itself uses: Envoy refuses a second listener on these
 * (docs/resources.md, L1, L16).
 */
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { hasHttpProxy } from '../routes/sidecar-routes.ts'
import type { Traits } from '../traits.ts'

/** Returns the wildcard address, which all services share on a port. */
export function wildcardOf(traits: Traits): string {
  return traits.ipv6 ? '::' : '0.0.0.0'
}

/** Returns the loopback address, which is reachable from the workload's own machine only. */
export function loopbackOf(traits: Traits): string {
  return traits.ipv6 ? '::1' : '127.0.0.1'
}

/** Port of the listener for inbound connections. */
export const virtualInboundPort = 15_006

/** Whether the proxy itself has a listener on an address: for redirected connections, for HTTP proxying, or one of its bootstrap. */
export function isOwnListener(bind: string, port: number, snapshot: MeshSnapshot, traits: Traits): boolean {
  const { mesh } = snapshot
  const isRedirected = traits.interception !== 'NONE' && mesh.proxyListenPort !== 0
  if (bind === wildcardOf(traits))
    return traits.bootstrapPorts.includes(port) || (isRedirected && (port === mesh.proxyListenPort || port === virtualInboundPort))
  return bind === '127.0.0.1' && port === mesh.proxyHttpPort && hasHttpProxy(snapshot, traits)
}
