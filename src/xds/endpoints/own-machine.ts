/** Endpoints on the machine of their caller, and the ports and sockets there that no endpoint may use (docs/resources.md, E7 and E8). */
import type { Endpoint } from '../../../protocols/data.ts'
import { leadsToCaller } from '../../config/addresses.ts'
import { portOf } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Traits } from '../traits.ts'

/**
 * Ports of a proxy and its agent: administration, outbound and inbound connections, debug pages, tunnels, status, health, DNS, metrics. The
 * servers on these ports trust callers on their own machine (docs/agent.md).
 */
const ownPorts: ReadonlySet<number> = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090])
/** Unix sockets of the agent: secrets, configuration, and both under the names of other releases. */
const ownSockets = /(^|\/)(etc\/(mesh|istio)\/proxy|workload-spiffe-uds)\/|\/(SDS|XDS)$/

/** Whether a port on the machine of a proxy belongs to the proxy or its agent as configured. */
export function isOwnPort(port: number, { proxyConfig }: Traits, { mesh }: MeshSnapshot): boolean {
  if (ownPorts.has(port)) return true
  const { proxyAdminPort, statusPort } = { ...mesh.defaultConfig, ...proxyConfig }
  return port !== 0 && [proxyAdminPort, statusPort, mesh.proxyListenPort, mesh.proxyHttpPort].includes(port)
}

/** Whether an address, starting with `unix://`, is that of a socket of the agent. */
export const isOwnSocket = (address: string): boolean => address.startsWith('unix://') && ownSockets.test(address)

/** A service as seen by one caller, and those of its endpoints that no caller may use. */
export interface AllowedEndpoints {
  readonly state: ServiceState
  readonly refused: readonly Endpoint[]
}

/**
 * Removes the endpoints on the caller's machine that the caller may not use: those with a port or socket of proxy or agent, and those of a
 * service of another namespace than `viewer`, the namespace of the caller. The latter are kept if the service is in the root namespace,
 * and, unless they are Unix sockets, if the caller's proxy redirects nothing: then workloads on one machine are distinguished by loopback
 * addresses.
 */
export function allowedEndpoints(viewer: string | undefined, state: ServiceState, traits: Traits, snapshot: MeshSnapshot): AllowedEndpoints {
  if (!state.hasLocalEndpoints || snapshot.settings.optOuts.has('endpoint-addresses')) return { state, refused: [] }
  const { service } = state
  const isOwn = isForAll(service.namespace, snapshot) || viewer === service.namespace
  const isRefused = (endpoint: Endpoint) =>
    leadsToCaller(endpoint.address) &&
    (isOwnSocket(endpoint.address) ||
      (!endpoint.address.startsWith('unix://') && service.ports.some((port) => isOwnPort(portOf(endpoint, port), traits, snapshot))))
  const isOpen = (endpoint: Endpoint) =>
    !leadsToCaller(endpoint.address) ||
    (!isRefused(endpoint) && (isOwn || (traits.interception === 'NONE' && !endpoint.address.startsWith('unix://'))))
  const endpoints = state.endpoints.filter(isOpen)
  if (endpoints.length === state.endpoints.length) return { state, refused: [] }
  const shards = state.shards.map((shard) => ({ ...shard, endpoints: shard.endpoints.filter(isOpen) }))
  return { state: { ...state, endpoints, shards }, refused: state.endpoints.filter(isRefused) }
}

const isForAll = (namespace: string, { mesh }: MeshSnapshot): boolean => namespace === mesh.rootNamespace

/**
 * Returns a key that is equal for callers for which {@link allowedEndpoints} keeps the same endpoints of a service; empty if the service
 * has no endpoint on the machine of a caller.
 */
export function allowedEndpointsKey(viewer: string | undefined, { service, hasLocalEndpoints }: ServiceState, traits: Traits): string {
  return hasLocalEndpoints ? JSON.stringify([viewer === service.namespace, traits.machineKey]) : ''
}
