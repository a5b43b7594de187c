/** The route configurations of a view, and the service ports and hosts in each (docs/resources.md, R1, R5, L1, L3, L14). */
import type { ServicePort } from '../../../protocols/data.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Traits } from '../traits.ts'
import type { RouteContext } from './http-routes.ts'
import { isSocket, offersPort, portUses, type RouteName, routeOfEgress, routeOfPort } from './port-uses.ts'

/** A service port in a route configuration. */
export interface RoutedPort {
  readonly route: RouteName
  readonly port: ServicePort
}

/** The route configuration of the HTTP proxy port; it has the hosts of all ports (docs/resources.md, L14). */
export const httpProxyRoute: RouteName = { name: 'http_proxy', port: 80, catchAll: true, isFixed: true, isOfAllPorts: true }

/** Whether a proxy has a listener that is an HTTP proxy. */
export function hasHttpProxy({ mesh }: Pick<MeshSnapshot, 'mesh'>, { interception }: Traits): boolean {
  return mesh.proxyHttpPort !== 0 && mesh.proxyListenPort !== 0 && interception !== 'NONE'
}

/** Returns the route configurations in which a service's ports occur when it is called through an egress listener. */
export function routedPorts({ service }: ServiceState, egress: EgressListener, view: View, snapshot: MeshSnapshot, traits: Traits): RoutedPort[] {
  const isProxied = hasHttpProxy(snapshot, traits)
  return portUses(service, egress, view.egress, snapshot, traits.interception).flatMap(({ port, kind, route }): RoutedPort[] => {
    if (!route) return []
    // A port with protocol detection on its own address also occurs in the shared route configuration of its port number.
    const shared = kind === 'sniffed' && !route.catchAll ? [{ route: routeOfPort(port.number), port }] : []
    return [...shared, { route, port }, ...(isProxied ? [{ route: httpProxyRoute, port }] : [])]
  })
}

/** A host without a service in the route configuration of a port. */
export interface PlaceWithoutService {
  readonly route: RouteName
  readonly virtualService: ResolvedVirtualService
}

/**
 * Returns the route configurations in which a host of a VirtualService occurs on its own when it is called through an egress listener
 * (docs/resources.md, R5): those of port 80 and of the HTTP ports of the VirtualService's other hosts, except the ports that a service of
 * the host has.
 */
export function placesWithoutService(
  host: string,
  egress: EgressListener,
  view: View,
  snapshot: MeshSnapshot,
  traits: Traits,
): PlaceWithoutService[] {
  const virtualService = egress.virtualServices.find(host)
  // A wildcard host occurs itself; hosts that only the wildcard covers do not.
  if (!virtualService || virtualService.http.length === 0 || !virtualService.hosts.includes(host) || isSocket(egress)) return []
  const { interception } = traits
  const own = new Set(view.service(host)?.service.ports.map(({ number }) => number))
  const others = virtualService.hosts.flatMap((other) => (other === host ? [] : (view.service(other)?.service ?? [])))
  const shared = others.flatMap((service) =>
    portUses(service, egress, view.egress, snapshot, interception).flatMap(({ port, route }) => (route ? [port.number] : [])),
  )
  const isOffered = (port: number) => (egress.port ? egress.port.number === port : offersPort(egress, view.egress, port, interception))
  const ports = [...new Set([80, ...shared])].filter((port) => !own.has(port) && isOffered(port))
  const routes = ports.flatMap((port) => [
    routeOfEgress(egress.bind, port),
    ...(port === httpProxyRoute.port && hasHttpProxy(snapshot, traits) ? [httpProxyRoute] : []),
  ])
  return routes.map((route) => ({ route, virtualService }))
}

/** Returns the context for making the routes of a view. */
export function routeContext(
  view: View,
  snapshot: MeshSnapshot,
  port: number,
  sourceLabels: Readonly<Record<string, string>>,
  namespace: string,
  { largestProgram, leftOut }: Pick<RouteContext, 'largestProgram' | 'leftOut'>,
): RouteContext {
  return {
    snapshot,
    largestProgram,
    leftOut,
    gateways: new Set(['mesh']),
    port,
    sourceLabels,
    sourceNamespace: namespace,
    service: (host) => view.service(host),
    rule: (state) => view.ruleFor(state.service),
  }
}
