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

/**
 * Whether a listener would take an address from the proxy itself: from its listeners for redirected connections, the one for HTTP proxying,
 * or those of its bootstrap. Redirected connections arrive at an address of the machine, so a listener that is bound to their port takes
 * them whatever its address.
 */
export function isOwnListener(bind: string, port: number, isBound: boolean, snapshot: MeshSnapshot, traits: Traits): boolean {
  const { mesh } = snapshot
  const isWildcard = bind === wildcardOf(traits)
  const isRedirected = traits.interception !== 'NONE' && mesh.proxyListenPort !== 0
  if (isRedirected && (isBound || isWildcard) && (port === mesh.proxyListenPort || port === virtualInboundPort)) return true
  if (isWildcard) return traits.bootstrapPorts.includes(port)
  return bind === '127.0.0.1' && port === mesh.proxyHttpPort && hasHttpProxy(snapshot, traits)
}
