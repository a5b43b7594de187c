/** The route configurations of a view: which there are, and which service ports and hosts take part in each (docs/resources.md, R1, R5, L1, L3). */
import type { ServicePort } from '../../../protocols/data.ts'
import { isHttp } from '../../model/protocol.ts'
import type { MeshSnapshot, ServiceState } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Traits } from '../traits.ts'
import type { RouteContext } from './http-routes.ts'

/** A route configuration by itself. */
export interface RouteName {
  readonly name: string
  readonly port: number
  /** Whether unknown hosts are dealt with; sniffed ports of one service need no such thing. */
  readonly catchAll: boolean
}

/** A service port that takes part in a route. */
export interface RoutedPort {
  readonly route: RouteName
  readonly port: ServicePort
}

/** Route of what is sent to the HTTP proxy port; it has hosts of all ports. */
export const httpProxyRoute: RouteName = { name: 'http_proxy', port: 80, catchAll: true }

/** The ports of a service that take part in routes when it is called through an egress listener. */
export function routedPorts({ service }: ServiceState, egress: EgressListener, snapshot: MeshSnapshot, traits: Traits): RoutedPort[] {
  const sniffing = snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  const vips = service.addresses.some((address) => !address.includes('/') && address !== '0.0.0.0')
  const routed: RoutedPort[] = []
  for (const port of service.ports) {
    if (egress.port && egress.port.number !== port.number) continue
    if (!isHttp(port.protocol) && !(port.protocol === 'unknown' && sniffing)) continue
    routed.push({ route: { name: String(port.number), port: port.number, catchAll: true }, port })
    if (port.protocol === 'unknown' && vips && !egress.port)
      routed.push({ route: { name: `${service.hostname}:${port.number}`, port: port.number, catchAll: false }, port })
  }
  if (snapshot.mesh.proxyHttpPort === 0 || traits.interception === 'NONE') return routed
  const shared = routed.filter(({ route }) => route.catchAll)
  const proxied = shared.find(({ port }) => port.number === 80) ?? shared[0]
  return proxied ? [...routed, { route: httpProxyRoute, port: proxied.port }] : routed
}

/** The VirtualService of a host that no visible service has; its routes stand on port 80. */
export function hostWithoutService(host: string, egress: EgressListener, view: View): ResolvedVirtualService | undefined {
  if (view.service(host)) return undefined
  const found = egress.virtualServices.find(host)
  // A wildcard answers for itself; hosts that only it covers are not hosts of their own.
  return found && found.http.length > 0 && found.hosts.includes(host) ? found : undefined
}

/** What the routes of a view may refer to. */
export function routeContext(
  view: View,
  snapshot: MeshSnapshot,
  port: number,
  sourceLabels: Readonly<Record<string, string>>,
  namespace: string,
): RouteContext {
  return {
    snapshot,
    gateways: new Set(['mesh']),
    port,
    sourceLabels,
    sourceNamespace: namespace,
    service: (host) => view.service(host),
    rule: (state) => view.ruleFor(state.service),
  }
}
