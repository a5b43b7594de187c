/** Endpoints that are on the machine of whoever calls them, and ports there that nothing may lead to (docs/resources.md, E7 and E8). */
import type { Endpoint } from '../../../protocols/data.ts'
import { leadsToCaller } from '../../config/addresses.ts'
import { portOf } from '../../model/workload.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Traits } from '../traits.ts'

/**
 * Ports of a proxy and its agent: administration, outbound and inbound connections, its debug pages, tunnels, status, health, DNS, metrics. What
 * listens there trusts its own machine (docs/agent.md).
 */
const ownPorts: ReadonlySet<number> = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090])
/** Sockets of the agent: secrets, configuration, and both as other releases name them. */
const ownSockets = /(^|\/)(etc\/(mesh|istio)\/proxy|workload-spiffe-uds)\/|\/(SDS|XDS)$/

/** Whether a port of the machine of a proxy belongs to the proxy or its agent, as they are configured. */
export function isOwnPort(port: number, { proxyConfig }: Traits, { mesh }: MeshSnapshot): boolean {
  if (ownPorts.has(port)) return true
  const { proxyAdminPort, statusPort } = { ...mesh.defaultConfig, ...proxyConfig }
  return port !== 0 && [proxyAdminPort, statusPort, mesh.proxyListenPort, mesh.proxyHttpPort].includes(port)
}

/** Whether a path of a unix socket, with `unix://` before it, is one of the agent's. */
export const isOwnSocket = (address: string): boolean => address.startsWith('unix://') && ownSockets.test(address)

/** A service as one caller has it, and what of its endpoints nobody may have. */
export interface OpenService {
  readonly state: ServiceState
  readonly refused: readonly Endpoint[]
}

/**
 * Leaves out the endpoints on the machine of the caller that are not for it: those with a port or socket of proxy or agent, and those of a service of
 * another namespace than `viewer`, the caller's own, unless nothing is redirected to its proxy (then workloads of one machine are told apart by
 * loopback addresses), or the service is of the root namespace. Unix sockets are for callers of the service's namespace in any case.
 */
export function openTo(viewer: string | undefined, state: ServiceState, traits: Traits, snapshot: MeshSnapshot): OpenService {
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

/** What tells callers apart in what {@link openTo} leaves of a service; empty where it leaves everything. */
export function openKey(viewer: string | undefined, { service, hasLocalEndpoints }: ServiceState, traits: Traits): string {
  return hasLocalEndpoints ? JSON.stringify([viewer === service.namespace, traits.machineKey]) : ''
}
