/** Endpoints on the machine of their caller, and the ports and sockets there that no endpoint may use (docs/resources.md, E7 and E8). */
import type { Endpoint, Service } from '../../../protocols/data.ts'
import { isIp, leadsToCaller } from '../../config/addresses.ts'
import type { MeshConfig } from '../../config/mesh-config.ts'
import { ownPorts } from '../../config/own-ports.ts'
import { sameItems } from '../../model/lists.ts'
import { portOf, servesPort } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { Slice } from '../../registry/slices.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Traits } from '../traits.ts'

/** Unix sockets of the agent: secrets, configuration, and both under the names of other releases. */
const ownSockets = /(^|\/)(etc\/(mesh|istio)\/proxy|workload-spiffe-uds)\/|\/(SDS|XDS)$/

/** Whether a port on the machine of a proxy belongs to the proxy or its agent as configured. */
export function isOwnPort(port: number, traits: Traits, { mesh }: MeshSnapshot): boolean {
  return ownPorts.has(port) || configuredPorts(traits, mesh).includes(port)
}

/** The ports of a proxy and its agent that its metadata and the mesh configuration name, beside {@link ownPorts}. */
export function configuredPorts({ proxyConfig, bootstrapPorts, tokenPort }: Traits, mesh: MeshConfig): number[] {
  const { proxyAdminPort, statusPort } = { ...mesh.defaultConfig, ...proxyConfig }
  const named = [proxyAdminPort, statusPort, mesh.proxyListenPort, mesh.proxyHttpPort, tokenPort, ...bootstrapPorts]
  return named.filter((port) => port !== undefined && port !== 0) as number[]
}

/** Whether an address, starting with `unix://`, is that of a socket of the agent. */
export const isOwnSocket = (address: string): boolean => address.startsWith('unix://') && ownSockets.test(address)

/** An endpoint that a caller may not use, or some ports of one. */
export interface RefusedEndpoint {
  readonly endpoint: Endpoint
  /** What is refused and why, for messages. */
  readonly reason: string
}

/** The endpoints of a slice that one caller may use, those that no caller may use, and those that others may use. */
export interface AllowedEndpoints {
  readonly endpoints: readonly Endpoint[]
  readonly refused: readonly RefusedEndpoint[]
  readonly hidden: readonly Endpoint[]
}

/**
 * Removes the endpoints on the caller's machine that the caller may not use: those with a port or socket of proxy or agent, and those of a
 * service of another namespace than `viewer`, the namespace of the caller. The latter are kept if the service is in the root namespace,
 * and, unless they are Unix sockets, if the caller's proxy redirects nothing: then workloads on one machine are distinguished by loopback
 * addresses. Of endpoints that proxies resolve, only the ports of proxy and agent are removed.
 */
export function allowedEndpoints(
  viewer: string | undefined,
  service: Service,
  { endpoints, hasLocal }: Pick<Slice, 'endpoints' | 'hasLocal'>,
  traits: Traits,
  snapshot: MeshSnapshot,
): AllowedEndpoints {
  const isResolved = service.resolution === 'dns'
  if (!(hasLocal || isResolved) || snapshot.settings.optOuts.has('endpoint-addresses')) return { endpoints, refused: [], hidden: [] }
  const isOwn = isForAll(service.namespace, snapshot) || viewer === service.namespace
  const isVisible = (endpoint: Endpoint) =>
    !leadsToCaller(endpoint.address) || isOwn || (traits.interception === 'NONE' && !endpoint.address.startsWith('unix://'))
  const allowed: Endpoint[] = []
  const refused: RefusedEndpoint[] = []
  const hidden: Endpoint[] = []
  for (const endpoint of endpoints) {
    const { open, reason } = judged(endpoint, service, isResolved, (port) => isOwnPort(port, traits, snapshot))
    if (reason !== undefined) refused.push({ endpoint, reason })
    if (!open) continue
    if (isVisible(open)) allowed.push(open)
    else hidden.push(endpoint)
  }
  return { endpoints: sameItems(allowed, endpoints) ? endpoints : allowed, refused, hidden }
}

/** What remains of an endpoint without the ports and sockets of proxy and agent, and why something is removed. */
function judged(
  endpoint: Endpoint,
  service: Service,
  isResolved: boolean,
  isOwn: (port: number) => boolean,
): { readonly open: Endpoint | undefined; readonly reason?: string } {
  const { address } = endpoint
  const isRefused = address.startsWith('unix://')
    ? isOwnSocket(address)
    : leadsToCaller(address) && service.ports.some((port) => isOwn(portOf(endpoint, port)))
  if (isRefused) return { open: undefined, reason: `endpoint ${address} leads to a port or socket of the proxy or its agent` }
  if (!isResolved || address === '' || isIp(address) || address.startsWith('unix://')) return { open: endpoint }
  // Whoever answers for the name decides whether it is an address of the caller's machine.
  const ports = service.ports.filter((port) => servesPort(endpoint, port))
  const taken = ports.filter((port) => isOwn(portOf(endpoint, port)))
  if (taken.length === 0) return { open: endpoint }
  const serves = ports.filter((port) => !taken.includes(port)).map(({ name }) => name)
  const listed = taken.map((port) => `${port.number} (at ${address}:${portOf(endpoint, port)})`).join(', ')
  return {
    open: serves.length > 0 ? { ...endpoint, serves } : undefined,
    reason: `service port ${listed} leads to a port of the proxy or its agent if the name resolves to an address of the caller's machine`,
  }
}

const isForAll = (namespace: string, { mesh }: MeshSnapshot): boolean => namespace === mesh.rootNamespace

/**
 * Returns a key that is equal for callers for which {@link allowedEndpoints} keeps the same endpoints of a service; empty if the service
 * has no endpoint on the machine of a caller.
 */
export function allowedEndpointsKey(viewer: string | undefined, { service, hasLocalEndpoints }: ServiceState, traits: Traits): string {
  return hasLocalEndpoints ? JSON.stringify([viewer === service.namespace, traits.machineKey]) : ''
}
