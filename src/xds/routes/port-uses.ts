/**
 * How each port of a service is served through an egress listener: as HTTP, as TCP or with protocol detection, and with which route
 * configuration. Listeners and routes are both derived from this, so that no listener names a route configuration that is not sent
 * (docs/resources.md, L1, L3, L5, L9, R13).
 */
import type { Service, ServicePort } from '../../../protocols/data.ts'
import { isHttp, selectProtocol } from '../../model/protocol.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener } from '../../snapshot/view.ts'
import type { Traits } from '../traits.ts'

/** Identifies a route configuration. */
export interface RouteName {
  readonly name: string
  readonly port: number
  /** Whether it has a catch-all virtual host for unknown hosts. The route of a single detected port has none. */
  readonly catchAll: boolean
  /** Whether it contains the virtual hosts of all ports. Domains without a port then belong to `port`. */
  readonly isOfAllPorts?: boolean
  /** Whether it exists without any service. Any other route configuration exists only if a host uses it. */
  readonly isFixed?: boolean
}

/** The use of a service port through an egress listener. */
export interface PortUse {
  readonly port: ServicePort
  /** `sniffed`: HTTP if detected, TCP otherwise. */
  readonly kind: 'http' | 'tcp' | 'sniffed'
  /**
   * The address of its listener: the wildcard address that all services share, the addresses of the service, the address of each pod, or
   * the address of the egress listener.
   */
  readonly at: 'shared' | 'service' | 'pods' | 'egress'
  /** The route configuration of its listener; undefined for TCP. */
  readonly route: RouteName | undefined
}

/** Returns the addresses of a service that are single virtual IPs. */
export const virtualAddresses = ({ addresses }: Service): string[] => addresses.filter((address) => !isRange(address) && address !== '0.0.0.0')

/** Whether an address of a service is a range (CIDR). */
export const isRange = (address: string): boolean => address.includes('/')

/**
 * Whether each pod of a headless service gets its own listeners: of an orchestrator's service, or of an entry with a workload selector
 * (docs/resources.md, L5).
 */
export function hasPodListeners(service: Service, { settings }: Pick<MeshSnapshot, 'settings'>): boolean {
  if (service.addresses.some((address) => address !== '0.0.0.0') || service.resolution !== 'passthrough') return false
  if (service.provider !== 'Orchestrator' && service.selector === undefined) return false
  return settings.features.PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS
}

/** Returns the route configuration that HTTP ports with this number share. */
export const routeOfPort = (port: number): RouteName => ({ name: String(port), port, catchAll: true })

/**
 * Returns the route configuration of an egress listener for a port. It is separate from the shared one if the listener has its own address.
 */
export function routeOfEgress(bind: string, port: number): RouteName {
  return bind === '' ? routeOfPort(port) : { name: `${bind}_${port}`, port, catchAll: true }
}

/**
 * Whether an egress listener is a Unix socket without a port: it has one listener and one route configuration for requests to all ports.
 */
export const isSocket = ({ bind, port }: EgressListener): boolean => port === undefined && bind.startsWith('unix://')

/** Returns the route configuration of a Unix socket for all ports. */
const routeOfSocket = (bind: string): RouteName => ({ name: bind, port: 80, catchAll: true, isOfAllPorts: true })

/** How connections are redirected to the proxy. */
type Interception = Traits['interception']

/** Whether the proxy binds the ports of an egress listener itself, because no connections are redirected to them. */
export function isBound({ bind, captureMode }: EgressListener, interception: Interception): boolean {
  return interception === 'NONE' || captureMode === 'NONE' || bind.startsWith('unix://')
}

/** The loopback addresses. */
export const loopbacks: ReadonlySet<string> = new Set(['127.0.0.1', '::1'])

/**
 * Returns the address that an egress listener uses for all its ports, `loopback` for each loopback address; empty if it uses the addresses
 * of the services.
 */
function placeOf(egress: EgressListener, interception: Interception): string {
  return egress.bind === '' ? (isBound(egress, interception) ? 'loopback' : '') : loopbacks.has(egress.bind) ? 'loopback' : egress.bind
}

/**
 * Whether an egress listener without a port serves a port. It does not if another egress listener declares this port on the same address or
 * for the same route configuration.
 */
export function offersPort(egress: EgressListener, all: readonly EgressListener[], port: number, interception: Interception): boolean {
  const isTaken = (other: EgressListener) => other.bind === '' || placeOf(other, interception) === placeOf(egress, interception)
  return !all.some((other) => other !== egress && other.port?.number === port && isTaken(other))
}

/** Returns the uses of a service's ports through an egress listener; `all` are the egress listeners of the view. */
export function portUses(
  service: Service,
  egress: EgressListener,
  all: readonly EgressListener[],
  snapshot: Pick<MeshSnapshot, 'settings'>,
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

/**
 * Returns the addresses for a port that is not declared HTTP: the virtual IPs or pods of the service, and the shared address for ranges or
 * if the service has no addresses.
 */
function placesOf(service: Service, snapshot: Pick<MeshSnapshot, 'settings'>): ('service' | 'pods' | 'shared')[] {
  const isShared = service.addresses.some(isRange)
  if (virtualAddresses(service).length > 0) return isShared ? ['service', 'shared'] : ['service']
  return [hasPodListeners(service, snapshot) ? 'pods' : 'shared']
}

/**
 * Returns the use of a service port through an egress listener with a port. The protocol that the listener declares applies to all
 * services.
 */
function usesOfEgress({ ports }: Service, { bind }: EgressListener, { number, protocol, name }: NonNullable<EgressListener['port']>): PortUse[] {
  const port = ports.find((entry) => entry.number === number)
  if (!port || port.protocol === 'udp') return []
  const given = protocol === '' && name === '' ? 'unknown' : selectProtocol(protocol, name, number)
  const asHttp = isHttp(given === 'unknown' ? port.protocol : given)
  return [{ port, kind: asHttp ? 'http' : 'tcp', at: 'egress', route: asHttp ? routeOfEgress(bind, number) : undefined }]
}
