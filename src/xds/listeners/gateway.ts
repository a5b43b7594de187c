/**
 * Listeners and routes of gateways: `envoy.config.listener.v3.Listener` and `RouteConfiguration` from Gateways and VirtualServices
 * (docs/resources.md, G1 to G7).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  type VirtualHost,
  VirtualHost_TlsRequirementType,
  VirtualHostSchema,
} from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { GatewayServer } from '../../config/kinds/gateway.ts'
import { configKey } from '../../config/kinds.ts'
import { largestDirectResponse } from '../../config/shapes/http-actions.ts'
import { contain } from '../../model/faults.ts'
import { holderText, isTlsServer, portConflict } from '../../model/gateway-ports.ts'
import { hostCovers, hostsOverlap, isExported } from '../../model/match.ts'
import { compare } from '../../model/order.ts'
import { isPlainHttp } from '../../model/protocol.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { type Gateway, serviceKey } from '../../snapshot/objects.ts'
import { coversService, isWildcardHost, passesMeshTls, refusalByHosts, serverHosts } from '../../snapshot/passed-on.ts'
import type { MeshSnapshot, ServerHost } from '../../snapshot/snapshot.ts'
import type { View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Draft, Problem } from '../draft.ts'
import { durationOf, socketAddress } from '../message.ts'
import { sniCluster } from '../names.ts'
import { checkMessage } from '../resource-check.ts'
import { type RouteContext, type RouteInit, routesOf } from '../routes/http-routes.ts'
import { applies, type Place } from '../routes/matches.ts'
import { routeContext } from '../routes/sidecar-routes.ts'
import { meshProtocols } from '../security/mutual-tls.ts'
import type { PolicyFilters } from '../security/policy-filters.ts'
import type { ProxyClass } from '../traits.ts'
import { listenerAccessLogs } from './access-log.ts'
import { type DistinctMatch, DistinctMatches } from './distinct-matches.ts'
import { type Filter, httpConnectionManager, tcpFilters, tlsInspector } from './filters.ts'
import { lacksCertificate, serverSocket, terminates } from './gateway-tls.ts'
import { wildcardOf } from './own-addresses.ts'
import { tcpSettings, tcpTargets } from './tcp-targets.ts'

/** A server of a Gateway that selects the proxy. */
interface ServerInUse {
  readonly gateway: Gateway
  readonly index: number
  readonly server: GatewayServer
  readonly protocol: string
  /** Hosts with their namespace; the namespace `*` means any. */
  readonly hosts: readonly ServerHost[]
  /** The port on which the proxy listens. */
  readonly listenPort: number
}

/** A server that is not served, because of another server or for want of a port or certificate. */
export interface RejectedServer {
  /** The Gateway of the server, as `<namespace>/<name>`. */
  readonly gateway: string
  readonly reason: string
}

interface PortPlan {
  readonly bind: string
  /** Whether it listens on all addresses. */
  readonly isWildcard: boolean
  readonly port: number
  readonly plainHttp: ServerInUse[]
  readonly others: ServerInUse[]
}

/** Assigns the servers of all Gateways that select the proxy to ports. Servers that cannot share a port are rejected. */
function plan(proxy: ProxyClass, snapshot: MeshSnapshot): { ports: PortPlan[]; rejected: RejectedServer[] } {
  const ports = new Map<string, PortPlan>()
  const rejected: RejectedServer[] = []
  const gateways = snapshot.gateways.filter((gateway) => proxy.gateways.includes(`${gateway.namespace}/${gateway.name}`))
  for (const gateway of gateways) {
    const name = `${gateway.namespace}/${gateway.name}`
    for (const [index, server] of gateway.spec.servers.entries()) {
      const given = {
        gateway,
        index,
        server,
        protocol: server.port.protocol.toUpperCase(),
        hosts: serverHosts(server, gateway),
      }
      for (const listenPort of listenPorts(server, proxy)) {
        const use: ServerInUse = { ...given, listenPort }
        const bind = server.bind || wildcardOf(proxy.traits)
        const key = `${bind}_${listenPort}`
        const there = ports.get(key) ?? { bind, isWildcard: bind === wildcardOf(proxy.traits), port: listenPort, plainHttp: [], others: [] }
        const reason = unavailable(there, proxy) ?? portTaken(there, use) ?? lacksCertificate(server, proxy.traits.certificates)
        if (reason) {
          rejected.push({ gateway: name, reason: `server ${server.port.name} on port ${server.port.number}: ${reason}` })
          continue
        }
        if (isPlainHttp(use.protocol)) there.plainHttp.push(use)
        else there.others.push(use)
        ports.set(key, there)
      }
    }
  }
  return { ports: [...ports.values()].sort((one, other) => one.port - other.port || compare(one.bind, other.bind)), rejected }
}

/** Returns why a server cannot have a port beside those that have it, and names the one that is in its way; undefined if it can. */
function portTaken({ plainHttp, others }: PortPlan, use: ServerInUse): string | undefined {
  const conflict = portConflict(plainHttp, others, use)
  if (!conflict) return undefined
  return `it is for ${use.protocol}, and ${holderText(conflict.with, use.gateway, use.listenPort)}: ${conflict.reason}`
}

/** Returns why a proxy cannot listen on a port; undefined if it can. */
function unavailable({ port, isWildcard }: PortPlan, { traits }: ProxyClass): string | undefined {
  if (traits.unprivileged && port < 1024) return `the proxy may not open port ${port} (UNPRIVILEGED_POD), which is below 1024`
  return isWildcard && traits.bootstrapPorts.includes(port) ? 'the proxy has a listener of its own there' : undefined
}

/** Returns the ports on which a gateway listens: the target ports of the service ports to which the traffic is sent. */
function listenPorts({ port: { number, targetPort } }: GatewayServer, { instances }: ProxyClass): readonly number[] {
  if (targetPort) return [targetPort]
  const targets = instances.flatMap((instance) => (instance.port.number === number ? [instance.targetPort] : []))
  return targets.length > 0 ? [...new Set(targets)] : [number]
}

/** Returns all listeners of a gateway. */
export function gatewayListeners(
  proxy: ProxyClass,
  view: View,
  guard: PolicyFilters,
  snapshot: MeshSnapshot,
): { listeners: Draft<Listener>[]; rejected: RejectedServer[]; unoffered: Problem[] } {
  const { ports, rejected } = plan(proxy, snapshot)
  const listeners = ports.map((port) => ({
    name: `${port.bind}_${port.port}`,
    objects: () => objectsOf([...port.plainHttp, ...port.others], proxy, snapshot),
    make: () => gatewayListener(port, proxy, view, guard, snapshot),
  }))
  const unoffered = ports.flatMap(({ others }) => others.flatMap((use) => unofferedServices(use, view)))
  return { listeners, rejected, unoffered }
}

/** Returns the ids of the Gateways of servers and of the VirtualServices that are bound to them. */
function objectsOf(uses: readonly ServerInUse[], proxy: ProxyClass, snapshot: MeshSnapshot): string[] {
  const services = uses.flatMap((use) => boundServices(use, proxy, snapshot).flatMap(({ sources }) => sources))
  return [...new Set([...uses.map(({ gateway }) => gateway), ...services].map(configKey))]
}

function gatewayListener(port: PortPlan, proxy: ProxyClass, view: View, guard: PolicyFilters, snapshot: MeshSnapshot): Listener | undefined {
  const matches = new DistinctMatches()
  const chains: ChainInit[] =
    port.plainHttp.length > 0
      ? [{ enforcement: 'request', filters: [httpFilter(plainRouteName(port), port, guard, proxy, snapshot)] }]
      : port.others
          .flatMap((use) => serverChains(use, port, guard, proxy, view, snapshot))
          .flatMap((chain): ChainInit[] => {
            const match = matches.take<DistinctMatch>(chain.filterChainMatch ?? {})
            return match ? [{ ...chain, ...(chain.filterChainMatch ? { filterChainMatch: match } : {}) }] : []
          })
          .map((chain) => (chain.enforcement === 'connection' ? { ...chain, filters: [...guard.tcp, ...chain.filters] } : chain))
  if (chains.length === 0) return undefined
  return create(ListenerSchema, {
    name: `${port.bind}_${port.port}`,
    address: socketAddress(port.bind, port.port),
    filterChains: chains,
    listenerFilters: port.others.some(isTlsServer) ? [tlsInspector()] : [],
    trafficDirection: 2,
    accessLog: listenerAccessLogs(snapshot.mesh),
    continueOnListenerFiltersTimeout: port.others.some(isTlsServer),
    ...(port.others.some(isTlsServer) ? { listenerFiltersTimeout: durationOf(snapshot.mesh.protocolDetectionTimeout) } : {}),
  })
}

function httpFilter(routes: string, port: PortPlan, guard: PolicyFilters, proxy: ProxyClass, snapshot: MeshSnapshot): Filter {
  return httpConnectionManager(
    { side: 'gateway', statPrefix: `outbound_${port.bind}_${port.port}`, routes, protocols: new Set(), policies: guard },
    snapshot,
    proxy.traits,
  )
}

interface ChainInit {
  readonly name?: string
  readonly filterChainMatch?: DistinctMatch
  readonly transportSocket?: { name: string; configType: { case: 'typedConfig'; value: Any } }
  readonly filters: Filter[]
  /**
   * Where policies are enforced on the traffic of the chain: by this proxy for each request, by this proxy for the connection, or by the
   * workload, to which the client's mutual TLS is passed through.
   */
  readonly enforcement: 'request' | 'connection' | 'workload'
}

function serverChains(use: ServerInUse, port: PortPlan, guard: PolicyFilters, proxy: ProxyClass, view: View, snapshot: MeshSnapshot): ChainInit[] {
  const names = use.hosts.map(({ host }) => host)
  const serverNames = names.includes('*') ? [] : names
  if (isTlsServer(use) && terminates(use.server)) {
    const transportSocket = serverSocket(use.server, proxy.traits.certificates, snapshot)
    const enforcement = use.protocol === 'HTTPS' ? 'request' : 'connection'
    const filters =
      enforcement === 'request' ? [httpFilter(secureRouteName(use), port, guard, proxy, snapshot)] : boundTargets(use, proxy, view, snapshot)
    return filters.length > 0 ? [{ enforcement, filterChainMatch: { serverNames, transportProtocol: 'tls' }, transportSocket, filters }] : []
  }
  if (passesMeshTls(use.server)) return autoPassthroughChains(use, view, proxy, snapshot)
  if (isTlsServer(use)) return passthroughChains(use, proxy, view, snapshot)
  const filters = boundTargets(use, proxy, view, snapshot)
  return filters.length > 0 ? [{ enforcement: 'connection', filters }] : []
}

/** Returns the name of the route configuration that all plain HTTP servers of a port share. */
const plainRouteName = ({ bind, isWildcard, port }: PortPlan): string => (isWildcard ? `http.${port}` : `http.${port}.${bind}`)

const secureRouteName = ({ server, gateway }: ServerInUse): string =>
  `https.${server.port.number}.${server.port.name}.${gateway.name}.${gateway.namespace}`

/** Returns the VirtualServices that are bound to the Gateway of a server and have a host in common with the server. */
function boundServices(use: ServerInUse, proxy: ProxyClass, snapshot: MeshSnapshot): ResolvedVirtualService[] {
  const name = `${use.gateway.namespace}/${use.gateway.name}`
  return snapshot.virtualServices.all.filter(
    (service) =>
      service.gateways.includes(name) &&
      isExported(service.exportTo, snapshot.mesh.defaultVirtualServiceExportTo, service.namespace, proxy.namespace) &&
      service.hosts.some((host) =>
        use.hosts.some((own) => (own.namespace === '*' || own.namespace === service.namespace) && hostsOverlap(own.host, host)),
      ),
  )
}

/** Returns the attributes of a server's connections for matches of routes. */
const placeOf = ({ gateway, server }: ServerInUse, { sourceLabels, namespace }: ProxyClass): Place => ({
  gateways: new Set([`${gateway.namespace}/${gateway.name}`]),
  port: server.port.number,
  sourceLabels,
  sourceNamespace: namespace,
})

/**
 * Whether a match of a TCP or TLS route applies at a server. Matches of source attributes are ignored, since the callers are outside the
 * mesh.
 */
const appliesToServer = ({ port, gateways }: { port?: number; gateways?: string[] }, place: Place): boolean => applies({ port, gateways }, place)

function boundTargets(use: ServerInUse, proxy: ProxyClass, view: View, snapshot: MeshSnapshot): Filter[] {
  const port = use.server.port.number
  const place = placeOf(use, proxy)
  for (const service of boundServices(use, proxy, snapshot)) {
    for (const route of service.tcp) {
      if (route.match?.length && !route.match.some((match) => appliesToServer(match, place))) continue
      return tcpFilters(
        `outbound_${use.listenPort}`,
        tcpTargets(route.route, port, view),
        use.protocol === 'MONGO' ? 'mongo' : use.protocol === 'MYSQL' ? 'mysql' : undefined,
        snapshot,
        proxy.traits,
      )
    }
  }
  return []
}

function passthroughChains(use: ServerInUse, proxy: ProxyClass, view: View, snapshot: MeshSnapshot): ChainInit[] {
  const port = use.server.port.number
  const place = placeOf(use, proxy)
  const chains: ChainInit[] = []
  const taken = new Set<string>()
  for (const service of boundServices(use, proxy, snapshot)) {
    for (const route of service.tls) {
      for (const match of route.match) {
        if (!appliesToServer(match, place)) continue
        const names = match.sniHosts.flatMap((name) => narrowed(use, service, name.toLowerCase())).filter((name) => !taken.has(name))
        if (names.length === 0) continue
        for (const name of names) taken.add(name)
        const filters = tcpFilters(`outbound_${use.listenPort}`, tcpTargets(route.route, port, view), undefined, snapshot, proxy.traits)
        chains.push({
          enforcement: 'connection',
          filterChainMatch: { serverNames: names.includes('*') ? [] : names, transportProtocol: 'tls' },
          filters,
        })
      }
    }
  }
  return chains
}

/**
 * Returns one chain for each port and subset of the services that the server's hosts cover. SNI selects the chain, and the connection is
 * passed through unchanged. Only mutual TLS of the mesh matches, identified by its ALPN. Services with a wildcard host are left out: Envoy
 * rejects server names with a star inside.
 */
function autoPassthroughChains(use: ServerInUse, view: View, proxy: ProxyClass, snapshot: MeshSnapshot): ChainInit[] {
  const isOffered = ({ service }: ServiceState) => refusalByHosts(use.hosts, service, snapshot) === undefined
  return view.services.filter(isOffered).flatMap((state) =>
    state.service.ports
      .filter((port) => port.protocol !== 'udp')
      .flatMap((port) =>
        [undefined, ...(view.ruleFor(state.service)?.subsets ?? [])].map((subset): ChainInit => {
          const cluster = sniCluster(port.number, subset?.name ?? '', state.service.hostname)
          return {
            enforcement: 'workload',
            filterChainMatch: { serverNames: [cluster], transportProtocol: 'tls', applicationProtocols: [...meshProtocols.http] },
            filters: tcpFilters(
              cluster,
              [{ cluster, weight: 1, settings: tcpSettings(view, state.service, port.number, subset?.name) }],
              undefined,
              snapshot,
              proxy.traits,
            ),
          }
        }),
      ),
  )
}

/** What the services lose that {@link autoPassthroughChains} leaves out because their hosts are wildcards (docs/resources.md, G6). */
function unofferedServices(use: ServerInUse, view: View): Problem[] {
  if (!passesMeshTls(use.server)) return []
  const left = view.services.filter(({ service }) => isWildcardHost(service) && !service.external && coversService(use.hosts, service))
  return left.map(({ service }) => ({
    type: 'gateway',
    resource: `${use.gateway.namespace}/${use.gateway.name}`,
    objects: [serviceKey(service), configKey(use.gateway)],
    reason: `a server with AUTO_PASSTHROUGH chooses services by server name, and ${service.hostname} is none (G6 in docs/resources.md)`,
    consequence: 'the gateway passes nothing on to it',
    isLoss: true,
  }))
}

/** The fault of a virtual host whose routes could not be made. */
export interface HostProblem {
  readonly route: string
  readonly host: string
  readonly objects: readonly string[]
  readonly reason: string
}

/**
 * Returns all route configurations of a gateway. If the routes of a host cannot be made, `failed` is called and returns the last good
 * virtual host, if there is one; other hosts of the route configuration are not affected. `leftOut` is called for parts that are left out
 * of a host's routes.
 */
export function gatewayRoutes(
  proxy: ProxyClass,
  view: View,
  snapshot: MeshSnapshot,
  failed: (problem: HostProblem) => VirtualHost | undefined,
  leftOut: RouteContext['leftOut'],
): Draft<RouteConfiguration>[] {
  const { ports } = plan(proxy, snapshot)
  const byName = new Map<string, { port: number; uses: ServerInUse[] }>()
  for (const port of ports) {
    const [first] = port.plainHttp
    if (first) byName.set(plainRouteName(port), { port: first.server.port.number, uses: port.plainHttp })
    for (const use of port.others)
      if (use.protocol === 'HTTPS' && terminates(use.server)) byName.set(secureRouteName(use), { port: use.server.port.number, uses: [use] })
  }
  return [...byName.entries()].map(([name, { port, uses }]) => ({
    name,
    objects: () => objectsOf(uses, proxy, snapshot),
    make: () =>
      gatewayRoute(
        name,
        port,
        uses,
        proxy,
        routeContext(view, snapshot, port, proxy.sourceLabels, proxy.namespace, { largestProgram: proxy.traits.largestProgram, leftOut }),
        failed,
      ),
  }))
}

/** The sources of the routes of a host. */
type Host = {
  sources: { service: ResolvedVirtualService; gateway: string; port: number; redirect: boolean }[]
  /** Whether a server of the host redirects requests to HTTPS. */
  redirect: boolean
}

function gatewayRoute(
  name: string,
  port: number,
  uses: readonly ServerInUse[],
  proxy: ProxyClass,
  context: RouteContext,
  failed: (problem: HostProblem) => VirtualHost | undefined,
): RouteConfiguration {
  const hosts = new Map<string, Host>()
  for (const use of uses) {
    const redirect = use.server.tls?.httpsRedirect === true
    const gateway = `${use.gateway.namespace}/${use.gateway.name}`
    // Servers of several ports may share a listener, and matches on a port mean that of the server.
    const { number } = use.server.port
    for (const service of boundServices(use, proxy, context.snapshot)) {
      for (const host of narrowHosts(use, service)) {
        const there = hosts.get(host)
        const source = { service, gateway, port: number, redirect }
        if (there) there.sources.push(source)
        else hosts.set(host, { sources: [source], redirect: false })
      }
    }
    if (redirect) for (const { host } of use.hosts) hosts.set(host, { sources: hosts.get(host)?.sources ?? [], redirect })
  }
  const secure = uses.some((use) => isTlsServer(use))
  const made = new Map<string, RouteInit[]>()
  const routesFrom = ({ service, gateway, port }: Host['sources'][number]): RouteInit[] => {
    const key = `${service.namespace}/${service.name}|${gateway}|${port}`
    let routes = made.get(key)
    if (!routes) made.set(key, (routes = routesOf(service, { ...context, port, secure, gateways: new Set([gateway]) })))
    return routes
  }
  const virtualHosts = [...hosts.entries()]
    .sort(([one], [other]) => compare(one, other))
    .flatMap(([host, { sources, redirect }]): VirtualHost[] =>
      contain(
        () => {
          const parts = sources.map((from) => ({ redirect: from.redirect, routes: routesFrom(from) })).filter(({ routes }) => routes.length > 0)
          const redirected = redirect || parts.some((part) => part.redirect)
          if (parts.length === 0 && !redirected) return []
          const found = virtualHost(
            host,
            port,
            parts.flatMap(({ routes }) => routes),
            redirected,
          )
          checkMessage(VirtualHostSchema, found)
          return [found]
        },
        (reason) => {
          const objects = [...new Set(sources.flatMap(({ service }) => service.sources.map(configKey)))]
          const kept = failed({ route: name, host: `${host}:${port}`, objects, reason })
          return kept ? [kept] : []
        },
      ),
    )
  if (virtualHosts.length === 0) virtualHosts.push(create(VirtualHostSchema, { name: `blackhole:${port}`, domains: ['*'] }))
  return create(RouteConfigurationSchema, {
    name,
    virtualHosts,
    validateClusters: false,
    ignorePortInHostMatching: true,
    maxDirectResponseBodySizeBytes: largestDirectResponse,
  })
}

/** Returns the hosts that a server and a VirtualService have in common; of two overlapping names the narrower one. */
const narrowHosts = (use: ServerInUse, service: ResolvedVirtualService): string[] => [
  ...new Set(service.hosts.flatMap((host) => narrowed(use, service, host))),
]

/**
 * Returns the hosts of a server that overlap with a host of a VirtualService: that host itself, or the hosts of the server that it covers.
 */
function narrowed(use: ServerInUse, { namespace }: ResolvedVirtualService, host: string): string[] {
  const own = use.hosts.filter((entry) => entry.namespace === '*' || entry.namespace === namespace).map((entry) => entry.host)
  return own.some((wide) => hostCovers(wide, host)) ? [host] : own.filter((narrow) => hostCovers(host, narrow))
}

function virtualHost(host: string, port: number, routes: RouteInit[], redirect: boolean): VirtualHost {
  const isAny = (route: RouteInit) =>
    route.match?.pathSpecifier?.case === 'prefix' &&
    route.match.pathSpecifier.value === '/' &&
    !route.match.headers?.length &&
    !route.match.queryParameters?.length &&
    !route.match.dynamicMetadata?.length
  const ordered = [...routes.filter((route) => !isAny(route)), ...routes.filter(isAny)]
  return create(VirtualHostSchema, {
    name: `${host}:${port}`,
    domains: host === '*' ? ['*'] : host.startsWith('*') ? [host, `${host}:${port}`] : [host, `${host}:*`],
    routes: ordered as MessageInitShape<typeof VirtualHostSchema>['routes'],
    includeRequestAttemptCount: true,
    requireTls: redirect ? VirtualHost_TlsRequirementType.ALL : VirtualHost_TlsRequirementType.NONE,
  })
}
