/** The route configurations of a view: which there are, and which service ports and hosts take part in each (docs/resources.md, R1, R5, L1, L3, L14). */
import type { ServicePort } from '../../../protocols/data.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Traits } from '../traits.ts'
import type { RouteContext } from './http-routes.ts'
import { isSocket, offersPort, portUses, type RouteName, routeOfEgress, routeOfPort } from './port-uses.ts'

/** A service port that takes part in a route. */
export interface RoutedPort {
  readonly route: RouteName
  readonly port: ServicePort
}

/** Route of what is sent to the HTTP proxy port; it has hosts of all ports (docs/resources.md, L14). */
export const httpProxyRoute: RouteName = { name: 'http_proxy', port: 80, catchAll: true, isFixed: true, isOfAllPorts: true }

/** Whether proxies have a listener that is an HTTP proxy. */
export function hasHttpProxy({ mesh }: MeshSnapshot, { interception }: Traits): boolean {
  return mesh.proxyHttpPort !== 0 && mesh.proxyListenPort !== 0 && interception !== 'NONE'
}

/** The ports of a service that take part in routes when it is called through an egress listener. */
export function routedPorts({ service }: ServiceState, egress: EgressListener, view: View, snapshot: MeshSnapshot, traits: Traits): RoutedPort[] {
  const isProxied = hasHttpProxy(snapshot, traits)
  return portUses(service, egress, view.egress, snapshot, traits.interception).flatMap(({ port, kind, route }): RoutedPort[] => {
    if (!route) return []
    // A sniffed port with an address of its own answers in the listener that all share as well.
    const shared = kind === 'sniffed' && !route.catchAll ? [{ route: routeOfPort(port.number), port }] : []
    return [...shared, { route, port }, ...(isProxied ? [{ route: httpProxyRoute, port }] : [])]
  })
}

/** A place of a host in the routes of a port that no service of it has. */
export interface PlaceWithoutService {
  readonly route: RouteName
  readonly virtualService: ResolvedVirtualService
}

/**
 * The routes in which a host of a VirtualService stands by itself, when it is called through an egress listener (docs/resources.md, R5): of port 80, and of the
 * ports with which another host of the VirtualService stands in routes; not of those that a service of the host has.
 */
export function placesWithoutService(
  host: string,
  egress: EgressListener,
  view: View,
  snapshot: MeshSnapshot,
  traits: Traits,
): PlaceWithoutService[] {
  const virtualService = egress.virtualServices.find(host)
  // A wildcard answers for itself; hosts that only it covers are not hosts of their own.
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

/** What the routes of a view may refer to. */
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
