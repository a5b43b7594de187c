/** Addresses at which sidecars listen, and those among them that are the proxy's own: Envoy refuses a second listener there (docs/resources.md, L1, L16). */
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { hasHttpProxy } from '../routes/sidecar-routes.ts'
import type { Traits } from '../traits.ts'

/** The address all services share on a port. */
export function wildcardOf(traits: Traits): string {
  return traits.ipv6 ? '::' : '0.0.0.0'
}

/** The address of the workload's own machine: what listens there is called by nobody else. */
export function loopbackOf(traits: Traits): string {
  return traits.ipv6 ? '::1' : '127.0.0.1'
}

/** Port of the listener for what reaches the workload. */
export const virtualInboundPort = 15_006

/** Whether the proxy has a listener of its own at an address: for redirected connections, for HTTP proxying, or one of its bootstrap. */
export function isOwnListener(bind: string, port: number, snapshot: MeshSnapshot, traits: Traits): boolean {
  const { mesh } = snapshot
  const isRedirected = traits.interception !== 'NONE' && mesh.proxyListenPort !== 0
  if (bind === wildcardOf(traits))
    return traits.bootstrapPorts.includes(port) || (isRedirected && (port === mesh.proxyListenPort || port === virtualInboundPort))
  return bind === '127.0.0.1' && port === mesh.proxyHttpPort && hasHttpProxy(snapshot, traits)
}
