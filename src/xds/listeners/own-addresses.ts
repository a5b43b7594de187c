/**
 * Addresses on which sidecars listen, and those among them that the proxy itself uses: Envoy refuses a second listener on these
 * (docs/resources.md, L1, L16).
 */
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { socketAddress } from '../message.ts'
import { hasHttpProxy } from '../routes/sidecar-routes.ts'
import type { Traits } from '../traits.ts'

/** The wildcard and loopback addresses of IPv4 and IPv6. */
const addresses = [
  { wildcard: '0.0.0.0', loopback: '127.0.0.1' },
  { wildcard: '::', loopback: '::1' },
] as const

/** Returns the addresses of the family of the proxy's own addresses: IPv4 unless it has none. */
const ownFamily = ({ ipv6 }: Traits) => addresses[ipv6 ? 1 : 0]

/** Returns the addresses of the other family; undefined for a proxy that listens in one family only. */
const otherFamily = ({ ipv6, bothFamilies }: Traits) => (bothFamilies ? addresses[ipv6 ? 0 : 1] : undefined)

/** Returns the wildcard address, which all services share on a port. */
export function wildcardOf(traits: Traits): string {
  return ownFamily(traits).wildcard
}

/** Returns the wildcard address of the other family, for a proxy that listens in both; otherwise undefined. */
export function otherWildcardOf(traits: Traits): string | undefined {
  return otherFamily(traits)?.wildcard
}

/** Returns the addresses that a listener at the wildcard address has beside it (`envoy.config.listener.v3.AdditionalAddress`). */
export function besideWildcard(traits: Traits, port: number) {
  const other = otherWildcardOf(traits)
  return other === undefined ? [] : [{ address: socketAddress(other, port) }]
}

/** Whether an address is a wildcard address of the families in which the proxy listens. */
export function isWildcard(bind: string, traits: Traits): boolean {
  return bind === wildcardOf(traits) || bind === otherWildcardOf(traits)
}

/** Returns the loopback address, which is reachable from the workload's own machine only. */
export function loopbackOf(traits: Traits): string {
  return ownFamily(traits).loopback
}

/** Returns the loopback address of the other family, for a proxy that listens in both; otherwise undefined. */
export function otherLoopbackOf(traits: Traits): string | undefined {
  return otherFamily(traits)?.loopback
}

/** Port of the listener for inbound connections. */
export const virtualInboundPort = 15_006

/**
 * Whether a listener would take an address from the proxy itself: from its listeners for redirected connections, the one for HTTP proxying,
 * or those of its bootstrap. Redirected connections arrive at an address of the machine, so a listener that is bound to their port takes
 * them whatever its address.
 */
export function isOwnListener(bind: string, port: number, isBound: boolean, snapshot: Pick<MeshSnapshot, 'mesh'>, traits: Traits): boolean {
  const { mesh } = snapshot
  const isShared = isWildcard(bind, traits)
  const isRedirected = traits.interception !== 'NONE' && mesh.proxyListenPort !== 0
  if (isRedirected && (isBound || isShared) && (port === mesh.proxyListenPort || port === virtualInboundPort)) return true
  if (isShared) return traits.bootstrapPorts.includes(port)
  return bind === '127.0.0.1' && port === mesh.proxyHttpPort && hasHttpProxy(snapshot, traits)
}
