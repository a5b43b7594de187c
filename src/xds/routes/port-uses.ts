/**
 * How the ports of a service are called through an egress listener: as HTTP, as bytes or sniffed, and by which route configuration. Listeners and
 * routes are both made from this, so that no listener names a route that is not sent (docs/resources.md, L1, L3, L5, L9, R13).
 */
import type { Service, ServicePort } from '../../../protocols/data.ts'
import { isHttp, selectProtocol } from '../../model/protocol.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener } from '../../snapshot/view.ts'
import type { Traits } from '../traits.ts'

/** A route configuration by itself. */
export interface RouteName {
  readonly name: string
  readonly port: number
  /** Whether unknown hosts are dealt with; sniffed ports of one service need no such thing. */
  readonly catchAll: boolean
  /** Whether it has the ports of all services: names without a port mean its own. */
  readonly isOfAllPorts?: boolean
  /** Whether it is there without any service; all others come with their first. */
  readonly isFixed?: boolean
}

/** A port of a service as it is called through an egress listener. */
export interface PortUse {
  readonly port: ServicePort
  /** `sniffed`: HTTP if it looks like it, bytes otherwise. */
  readonly kind: 'http' | 'tcp' | 'sniffed'
  /** Where it listens: on the address that all share, on those of the service, on that of each pod, or on the address of the egress listener. */
  readonly at: 'shared' | 'service' | 'pods' | 'egress'
  /** Route configuration of its listener; undefined for bytes. */
  readonly route: RouteName | undefined
}

/** Virtual addresses of a service to which single connections go. */
export const virtualAddresses = ({ addresses }: Service): string[] => addresses.filter((address) => !isRange(address) && address !== '0.0.0.0')

/** Whether an address of a service is a range of them (CIDR). */
export const isRange = (address: string): boolean => address.includes('/')

/** Whether each pod of a headless service, of an orchestrator or of an entry that selects its workloads, has listeners of its own (docs/resources.md, L5). */
export function hasPodListeners(service: Service, { settings }: MeshSnapshot): boolean {
  if (service.addresses.some((address) => address !== '0.0.0.0') || service.resolution !== 'passthrough') return false
  if (service.provider !== 'Orchestrator' && service.selector === undefined) return false
  return settings.features.PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS
}

/** The route configuration that HTTP ports of all services share. */
export const routeOfPort = (port: number): RouteName => ({ name: String(port), port, catchAll: true })

/** The route configuration of an egress listener for a port: where the listener has an address of its own, so has the route. */
export function routeOfEgress(bind: string, port: number): RouteName {
  return bind === '' ? routeOfPort(port) : { name: `${bind}_${port}`, port, catchAll: true }
}

/** Whether an egress listener is a unix socket without a port: one listener, and one route, for requests to all ports. */
export const isSocket = ({ bind, port }: EgressListener): boolean => port === undefined && bind.startsWith('unix://')

/** The route configuration of a unix socket for all ports. */
const routeOfSocket = (bind: string): RouteName => ({ name: bind, port: 80, catchAll: true, isOfAllPorts: true })

/** How the connections of a proxy are redirected. */
type Interception = Traits['interception']

/** Whether the ports of an egress listener are opened by the proxy itself, because no connection is redirected to them. */
export function isBound({ bind, captureMode }: EgressListener, interception: Interception): boolean {
  return interception === 'NONE' || captureMode === 'NONE' || bind.startsWith('unix://')
}

/** The addresses of one's own machine. */
export const loopbacks: ReadonlySet<string> = new Set(['127.0.0.1', '::1'])

/** The address that an egress listener has for all its ports, with one word for loopback; empty where it has those of the services. */
function placeOf(egress: EgressListener, interception: Interception): string {
  return egress.bind === '' ? (isBound(egress, interception) ? 'loopback' : '') : loopbacks.has(egress.bind) ? 'loopback' : egress.bind
}

/** Whether an egress listener without a port offers a port: it does not where another one has it at the same address, or by the same route. */
export function offersPort(egress: EgressListener, all: readonly EgressListener[], port: number, interception: Interception): boolean {
  const isTaken = (other: EgressListener) => other.bind === '' || placeOf(other, interception) === placeOf(egress, interception)
  return !all.some((other) => other !== egress && other.port?.number === port && isTaken(other))
}

/** The ports of a service that are called through an egress listener; `all` are those of the view. */
export function portUses(
  service: Service,
  egress: EgressListener,
  all: readonly EgressListener[],
  snapshot: MeshSnapshot,
  interception: Interception,
): PortUse[] {
  if (egress.port) return usesOfEgress(service, egress, egress.port)
  const isSniffing = snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  const hasPlace = placeOf(egress, interception) !== ''
  return service.ports.flatMap((port): PortUse[] => {
    if (port.protocol === 'udp' || !offersPort(egress, all, port.number, interception)) return []
    const isSniffed = port.protocol === 'unknown' && isSniffing
    if (isSocket(egress)) return isHttp(port.protocol) ? [{ port, kind: 'http', at: 'egress', route: routeOfSocket(egress.bind) }] : []
    if (hasPlace) {
      const kind = isHttp(port.protocol) ? 'http' : isSniffed ? 'sniffed' : 'tcp'
      return [{ port, kind, at: 'egress', route: kind === 'tcp' ? undefined : routeOfEgress(egress.bind, port.number) }]
    }
    if (isHttp(port.protocol)) return [{ port, kind: 'http', at: 'shared', route: routeOfPort(port.number) }]
    return placesOf(service, snapshot).map((at): PortUse => {
      if (!isSniffed) return { port, kind: 'tcp', at, route: undefined }
      const own: RouteName = { name: `${service.hostname}:${port.number}`, port: port.number, catchAll: false }
      return { port, kind: 'sniffed', at, route: at === 'shared' ? routeOfPort(port.number) : own }
    })
  })
}

/** Where a port listens that is not declared HTTP: on single addresses of the service or its pods, and for ranges of addresses, or without any, where all do. */
function placesOf(service: Service, snapshot: MeshSnapshot): ('service' | 'pods' | 'shared')[] {
  const isShared = service.addresses.some(isRange)
  if (virtualAddresses(service).length > 0) return isShared ? ['service', 'shared'] : ['service']
  return [hasPodListeners(service, snapshot) ? 'pods' : 'shared']
}

/** The protocol that an egress listener gives for its port holds for all services on it. */
function usesOfEgress({ ports }: Service, { bind }: EgressListener, { number, protocol, name }: NonNullable<EgressListener['port']>): PortUse[] {
  const port = ports.find((entry) => entry.number === number)
  if (!port || port.protocol === 'udp') return []
  const given = protocol === '' && name === '' ? 'unknown' : selectProtocol(protocol, name, number)
  const asHttp = isHttp(given === 'unknown' ? port.protocol : given)
  return [{ port, kind: asHttp ? 'http' : 'tcp', at: 'egress', route: asHttp ? routeOfEgress(bind, number) : undefined }]
}
