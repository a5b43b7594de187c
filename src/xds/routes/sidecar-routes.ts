/** The route configurations of a view: which there are, and the virtual hosts in each (discovery behaviour 2.7). */
import type { ServicePort } from '../../../protocols/data.ts'
import { isHttp } from '../../model/protocol.ts'
import type { MeshSnapshot, ServiceState } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import { hostLookup, type ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Traits } from '../traits.ts'
import type { RouteContext } from './http-routes.ts'

/** A service port that takes part in a route. */
export interface RoutedPort {
  readonly state: ServiceState
  readonly port: ServicePort
  readonly virtualService: ResolvedVirtualService | undefined
}

/** One route configuration before it is encoded. */
export interface RoutePlan {
  readonly name: string
  readonly port: number
  /** Sorted by namespace, then host name. */
  readonly ports: readonly RoutedPort[]
  /** Hosts that only a VirtualService knows. */
  readonly extraHosts: readonly { readonly host: string; readonly virtualService: ResolvedVirtualService }[]
  /** Whether unknown hosts are dealt with; sniffed ports of one service need no such thing. */
  readonly catchAll: boolean
}

/** All route configurations of a view. */
export function routePlans(view: View, snapshot: MeshSnapshot, traits: Traits): RoutePlan[] {
  const plans = new Map<string, RoutePlan>()
  const sniffing = snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  for (const egress of view.egress) {
    const lookup = hostLookup(egress.virtualServices)
    const byPort = new Map<number, RoutedPort[]>()
    for (const state of egress.services) {
      for (const port of state.service.ports) {
        if (egress.port && egress.port.number !== port.number) continue
        if (!isHttp(port.protocol) && !(port.protocol === 'unknown' && sniffing)) continue
        const routed = { state, port, virtualService: lookup.find(state.service.hostname) }
        const list = byPort.get(port.number)
        if (list) list.push(routed)
        else byPort.set(port.number, [routed])
        const vips = state.service.addresses.some((address) => !address.includes('/') && address !== '0.0.0.0')
        if (port.protocol === 'unknown' && vips && !egress.port) {
          const name = `${state.service.hostname}:${port.number}`
          plans.set(name, { name, port: port.number, ports: [routed], extraHosts: [], catchAll: false })
        }
      }
    }
    for (const [number, ports] of byPort) {
      const name = String(number)
      if (!plans.has(name)) plans.set(name, { name, port: number, ports, extraHosts: extraHosts(egress, lookup, ports), catchAll: true })
    }
  }
  if (snapshot.mesh.proxyHttpPort !== 0 && traits.interception !== 'NONE') {
    const ports = [...plans.values()].filter((plan) => plan.catchAll).flatMap((plan) => plan.ports)
    plans.set('http_proxy', { name: 'http_proxy', port: 80, ports: dedupe(ports), extraHosts: [], catchAll: true })
  }
  return [...plans.values()]
}

/** One virtual host a service: the port 80 one if it has it. */
function dedupe(ports: readonly RoutedPort[]): RoutedPort[] {
  const byService = new Map<string, RoutedPort>()
  for (const routed of ports) {
    const key = `${routed.state.service.namespace}/${routed.state.service.hostname}`
    if (!byService.has(key) || routed.port.number === 80) byService.set(key, routed)
  }
  return [...byService.values()]
}

function extraHosts(egress: EgressListener, lookup: ReturnType<typeof hostLookup>, ports: readonly RoutedPort[]): RoutePlan['extraHosts'] {
  const known = new Set(ports.map((routed) => routed.state.service.hostname))
  const anywhere = new Set(egress.services.map((state) => state.service.hostname))
  const result: { host: string; virtualService: ResolvedVirtualService }[] = []
  for (const host of lookup.hosts()) {
    const virtualService = lookup.find(host)
    if (!virtualService || virtualService.http.length === 0 || known.has(host) || anywhere.has(host)) continue
    result.push({ host, virtualService })
  }
  return result
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
    service: (host) => view.byHost.get(host),
    rule: (state) => view.ruleFor(state.service),
  }
}
