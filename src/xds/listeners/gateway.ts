/** Listeners and routes of gateways: `envoy.config.listener.v3.Listener`, `RouteConfiguration` from Gateways and VirtualServices (docs/resources.md, G1 to G6). */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  type VirtualHost,
  VirtualHost_TlsRequirementType,
  VirtualHostSchema,
} from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { DownstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { GatewayServer } from '../../config/kinds/gateway.ts'
import type { TcpRoute } from '../../config/kinds/virtual-service.ts'
import { configKey } from '../../config/kinds.ts'
import { largestDirectResponse } from '../../config/shapes/http-actions.ts'
import { contain } from '../../model/faults.ts'
import { hostCovers, hostsOverlap, isExported } from '../../model/match.ts'
import { compare } from '../../model/order.ts'
import type { Gateway } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Draft } from '../draft.ts'
import { durationOf, pack, socketAddress } from '../message.ts'
import { destinationCluster, sniCluster } from '../names.ts'
import { checkMessage } from '../resource-check.ts'
import { type RouteInit, routesOf } from '../routes/http-routes.ts'
import { applies, type Place } from '../routes/matches.ts'
import { routeContext } from '../routes/sidecar-routes.ts'
import { certificateName } from '../secrets/secret-names.ts'
import { authoritiesContext, gatewaySecret } from '../security/credentials.ts'
import { certificateContext, meshProtocols } from '../security/mutual-tls.ts'
import type { PolicyFilters } from '../security/policy-filters.ts'
import type { ProxyClass, Traits } from '../traits.ts'
import { listenerAccessLogs } from './access-log.ts'
import { type DistinctMatch, DistinctMatches } from './distinct-matches.ts'
import { type Filter, httpConnectionManager, tcpFilters, tlsInspector } from './filters.ts'
import { wildcardOf } from './own-addresses.ts'

/** A server of a Gateway that selects the proxy. */
interface ServerInUse {
  readonly gateway: Gateway
  readonly server: GatewayServer
  readonly protocol: string
  /** Hosts as `{namespace, host}`; namespace `*` = any. */
  readonly hosts: readonly { readonly namespace: string; readonly host: string }[]
  /** Port the proxy listens on. */
  readonly listenPort: number
}

/** A server that lost against another one. */
export interface RejectedServer {
  /** `<namespace>/<name>` of its Gateway. */
  readonly gateway: string
  readonly reason: string
}

interface PortPlan {
  readonly bind: string
  readonly port: number
  readonly plainHttp: ServerInUse[]
  readonly others: ServerInUse[]
}

const isTls = (use: ServerInUse): boolean => use.protocol === 'HTTPS' || use.protocol === 'TLS'
const isPlainHttp = (use: ServerInUse): boolean => ['HTTP', 'HTTP2', 'GRPC', 'GRPC-WEB'].includes(use.protocol)
const terminates = (use: ServerInUse): boolean =>
  use.server.tls?.mode !== undefined && use.server.tls.mode !== 'PASSTHROUGH' && use.server.tls.mode !== 'AUTO_PASSTHROUGH'

/** Sorts the servers of all Gateways that select the proxy onto ports; servers that cannot share a port are rejected. */
function plan(proxy: ProxyClass, snapshot: MeshSnapshot): { ports: PortPlan[]; rejected: RejectedServer[] } {
  const ports = new Map<string, PortPlan>()
  const rejected: RejectedServer[] = []
  const gateways = snapshot.gateways.filter((gateway) => proxy.gateways.includes(`${gateway.namespace}/${gateway.name}`))
  for (const gateway of gateways) {
    const name = `${gateway.namespace}/${gateway.name}`
    for (const server of gateway.spec.servers) {
      const use: ServerInUse = {
        gateway,
        server,
        protocol: server.port.protocol.toUpperCase(),
        hosts: server.hosts.map((host) => splitHost(host, gateway.namespace)),
        listenPort: targetPort(server, proxy),
      }
      if (proxy.traits.unprivileged && use.listenPort < 1024) continue
      const bind = server.bind || wildcardOf(proxy.traits)
      const key = `${bind}_${use.listenPort}`
      const there = ports.get(key) ?? { bind, port: use.listenPort, plainHttp: [], others: [] }
      const reason = conflict(there, use)
      if (reason) {
        rejected.push({ gateway: name, reason: `server ${server.port.name} on port ${server.port.number}: ${reason}` })
        continue
      }
      if (isPlainHttp(use)) there.plainHttp.push(use)
      else there.others.push(use)
      ports.set(key, there)
    }
  }
  return { ports: [...ports.values()].sort((one, other) => one.port - other.port || compare(one.bind, other.bind)), rejected }
}

function conflict(there: PortPlan, use: ServerInUse): string | undefined {
  if (isPlainHttp(use)) return there.others.length > 0 ? 'another gateway uses the port with another protocol' : undefined
  if (there.plainHttp.length > 0) return 'another gateway uses the port for HTTP'
  if (!isTls(use)) return there.others.length > 0 ? 'a TCP server needs the port for itself' : undefined
  if (there.others.some((other) => !isTls(other))) return 'another gateway uses the port for TCP'
  const taken = new Set(there.others.flatMap((other) => other.hosts.map(({ host }) => host)))
  const twice = use.hosts.find(({ host }) => taken.has(host))
  return twice ? `the host ${twice.host} is served on the port already` : undefined
}

function splitHost(text: string, namespace: string): { namespace: string; host: string } {
  const slash = text.indexOf('/')
  if (slash < 0) return { namespace: '*', host: text.toLowerCase() }
  const given = text.slice(0, slash)
  return { namespace: given === '.' ? namespace : given, host: text.slice(slash + 1).toLowerCase() }
}

/** A gateway listens where its service's traffic arrives: the target port of the service port. */
function targetPort(server: GatewayServer, proxy: ProxyClass): number {
  if (server.port.targetPort) return server.port.targetPort
  const instance = proxy.instances.find((known) => known.port.number === server.port.number)
  return instance?.targetPort ?? server.port.number
}

/** All listeners of a gateway. */
export function gatewayListeners(
  proxy: ProxyClass,
  view: View,
  guard: PolicyFilters,
  snapshot: MeshSnapshot,
): { listeners: Draft<Listener>[]; rejected: RejectedServer[] } {
  const { ports, rejected } = plan(proxy, snapshot)
  const listeners = ports.map((port) => ({
    name: `${port.bind}_${port.port}`,
    objects: () => objectsOf([...port.plainHttp, ...port.others], proxy, snapshot),
    make: () => gatewayListener(port, proxy, view, guard, snapshot),
  }))
  return { listeners, rejected }
}

/** The Gateways of servers, and the VirtualServices that are bound to them. */
function objectsOf(uses: readonly ServerInUse[], proxy: ProxyClass, snapshot: MeshSnapshot): string[] {
  const services = uses.flatMap((use) => boundServices(use, proxy, snapshot).flatMap(({ sources }) => sources))
  return [...new Set([...uses.map(({ gateway }) => gateway), ...services].map(configKey))]
}

function gatewayListener(port: PortPlan, proxy: ProxyClass, view: View, guard: PolicyFilters, snapshot: MeshSnapshot): Listener | undefined {
  const matches = new DistinctMatches()
  const chains: ChainInit[] =
    port.plainHttp.length > 0
      ? [{ filters: [httpFilter(`http.${(port.plainHttp[0] as ServerInUse).server.port.number}`, port, guard, proxy, snapshot)] }]
      : port.others
          .flatMap((use) => serverChains(use, port, guard, proxy, view, snapshot))
          .flatMap((chain): ChainInit[] => {
            const match = matches.take<DistinctMatch>(chain.filterChainMatch ?? {})
            return match ? [{ ...chain, ...(chain.filterChainMatch ? { filterChainMatch: match } : {}) }] : []
          })
          .map((chain) => (chain.http ? chain : { ...chain, filters: [...guard.tcp, ...chain.filters] }))
  if (chains.length === 0) return undefined
  return create(ListenerSchema, {
    name: `${port.bind}_${port.port}`,
    address: socketAddress(port.bind, port.port),
    filterChains: chains,
    listenerFilters: port.others.some(isTls) ? [tlsInspector()] : [],
    trafficDirection: 2,
    accessLog: listenerAccessLogs(snapshot.mesh),
    continueOnListenerFiltersTimeout: port.others.some(isTls),
    ...(port.others.some(isTls) ? { listenerFiltersTimeout: durationOf(snapshot.mesh.protocolDetectionTimeout) } : {}),
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
  readonly transportSocket?: { name: string; configType: { case: 'typedConfig'; value: ReturnType<typeof pack> } }
  readonly filters: Filter[]
  /** Whether requests are seen in it, so that policies judge those, and not the connection. */
  readonly http?: boolean
}

function serverChains(use: ServerInUse, port: PortPlan, guard: PolicyFilters, proxy: ProxyClass, view: View, snapshot: MeshSnapshot): ChainInit[] {
  const names = use.hosts.map(({ host }) => host)
  const serverNames = names.includes('*') ? [] : names
  if (isTls(use) && terminates(use)) {
    const socket = {
      name: 'envoy.transport_sockets.tls',
      configType: { case: 'typedConfig' as const, value: serverTls(use, proxy.traits, snapshot) },
    }
    const http = use.protocol === 'HTTPS'
    const filters = http ? [httpFilter(secureRouteName(use), port, guard, proxy, snapshot)] : tcpTargets(use, proxy, view, snapshot)
    return filters.length > 0 ? [{ http, filterChainMatch: { serverNames, transportProtocol: 'tls' }, transportSocket: socket, filters }] : []
  }
  if (use.server.tls?.mode === 'AUTO_PASSTHROUGH') return autoPassthroughChains(view, proxy, snapshot)
  if (isTls(use)) return passthroughChains(use, proxy, view, snapshot)
  const filters = tcpTargets(use, proxy, view, snapshot)
  return filters.length > 0 ? [{ filters }] : []
}

const secureRouteName = ({ server, gateway }: ServerInUse): string =>
  `https.${server.port.number}.${server.port.name}.${gateway.name}.${gateway.namespace}`

const tlsVersions: Readonly<Record<string, number>> = { TLS_AUTO: 0, TLSV1_0: 1, TLSV1_1: 2, TLSV1_2: 3, TLSV1_3: 4 }
const knownCiphers = new Set(
  'ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA AES256-SHA'.split(
    ' ',
  ),
)

function serverTls(use: ServerInUse, traits: Traits, snapshot: MeshSnapshot) {
  const tls = use.server.tls ?? {}
  const file = (filename: string) => ({ specifier: { case: 'filename' as const, value: filename } })
  const mutual = tls.mode === 'MUTUAL' || tls.mode === 'ISTIO_MUTUAL' || tls.mode === 'OPTIONAL_MUTUAL'
  const params = {
    ...(tls.minProtocolVersion ? { tlsMinimumProtocolVersion: tlsVersions[tls.minProtocolVersion] } : {}),
    ...(tls.maxProtocolVersion ? { tlsMaximumProtocolVersion: tlsVersions[tls.maxProtocolVersion] } : {}),
    cipherSuites: (tls.cipherSuites ?? []).filter((name) => knownCiphers.has(name)),
  }
  const sans = (tls.subjectAltNames ?? []).map((name) => ({
    sanType: name.includes('://') ? 3 : 2,
    matcher: { matchPattern: { case: 'exact' as const, value: name } },
  }))
  const checks = {
    matchTypedSubjectAltNames: sans,
    verifyCertificateHash: tls.verifyCertificateHash ?? [],
    verifyCertificateSpki: tls.verifyCertificateSpki ?? [],
  }
  const own =
    tls.mode === 'ISTIO_MUTUAL'
      ? certificateContext(traits.certificates.server, [])
      : tls.credentialName
        ? {
            tlsCertificateSdsSecretConfigs: [gatewaySecret(certificateName(tls.credentialName), snapshot)],
            ...(mutual ? authoritiesContext(tls.credentialName, checks, snapshot) : {}),
          }
        : {
            tlsCertificates: [{ certificateChain: file(tls.serverCertificate ?? ''), privateKey: file(tls.privateKey ?? '') }],
            ...(mutual && tls.caCertificates
              ? { validationContextType: { case: 'validationContext' as const, value: { trustedCa: file(tls.caCertificates), ...checks } } }
              : {}),
          }
  return pack(DownstreamTlsContextSchema, {
    requireClientCertificate: mutual && tls.mode !== 'OPTIONAL_MUTUAL',
    commonTlsContext: { tlsParams: params, alpnProtocols: use.protocol === 'HTTPS' ? ['h2', 'http/1.1'] : [], ...own },
  })
}

/** VirtualServices bound to a server's Gateway that have a host in common with it. */
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

const targetsOf = ({ route }: Pick<TcpRoute, 'route'>, view: View, port: number) =>
  route.map(({ destination, weight }) => ({ cluster: destinationCluster(destination, port, (host) => view.service(host)), weight: weight ?? 0 }))

/** Where the connections of a server come to. */
const placeOf = ({ gateway, server }: ServerInUse, { sourceLabels, namespace }: ProxyClass): Place => ({
  gateways: new Set([`${gateway.namespace}/${gateway.name}`]),
  port: server.port.number,
  sourceLabels,
  sourceNamespace: namespace,
})

/** Whether a match of connections holds at a server; who calls is nobody of the mesh. */
const appliesToServer = ({ port, gateways }: { port?: number; gateways?: string[] }, place: Place): boolean => applies({ port, gateways }, place)

function tcpTargets(use: ServerInUse, proxy: ProxyClass, view: View, snapshot: MeshSnapshot): Filter[] {
  const port = use.server.port.number
  const place = placeOf(use, proxy)
  for (const service of boundServices(use, proxy, snapshot)) {
    for (const route of service.tcp) {
      if (route.match?.length && !route.match.some((match) => appliesToServer(match, place))) continue
      return tcpFilters(
        `outbound_${use.listenPort}`,
        targetsOf(route, view, port),
        use.protocol === 'MONGO' ? 'mongo' : undefined,
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
        const names = match.sniHosts.filter((name) => !taken.has(name) && use.hosts.some(({ host }) => hostsOverlap(host, name)))
        if (names.length === 0) continue
        for (const name of names) taken.add(name)
        const filters = tcpFilters(`outbound_${use.listenPort}`, targetsOf(route, view, port), undefined, snapshot, proxy.traits)
        chains.push({ filterChainMatch: { serverNames: names.includes('*') ? [] : names, transportProtocol: 'tls' }, filters })
      }
    }
  }
  return chains
}

/** One chain a service port: SNI decides, and the connection is passed on as it is; only mutual TLS of the mesh, which says so in its ALPN. */
function autoPassthroughChains(view: View, proxy: ProxyClass, snapshot: MeshSnapshot): ChainInit[] {
  return view.services.flatMap((state) =>
    state.service.ports
      .filter((port) => port.protocol !== 'udp' && !state.service.external)
      .flatMap((port) =>
        [undefined, ...(view.ruleFor(state.service)?.subsets ?? [])].map((subset): ChainInit => {
          const cluster = sniCluster(port.number, subset?.name ?? '', state.service.hostname)
          return {
            filterChainMatch: { serverNames: [cluster], transportProtocol: 'tls', applicationProtocols: [...meshProtocols.http] },
            filters: tcpFilters(cluster, [{ cluster, weight: 1 }], undefined, snapshot, proxy.traits),
          }
        }),
      ),
  )
}

/** What stands where the routes of a gateway's host could not be made. */
export interface HostProblem {
  readonly route: string
  readonly host: string
  readonly objects: readonly string[]
  readonly reason: string
}

/**
 * All route configurations of a gateway. A host whose routes cannot be made is told to `failed`, which gives its last good form if
 * there is one; the other hosts of the route are not affected.
 */
export function gatewayRoutes(
  proxy: ProxyClass,
  view: View,
  snapshot: MeshSnapshot,
  failed: (problem: HostProblem) => VirtualHost | undefined,
): Draft<RouteConfiguration>[] {
  const { ports } = plan(proxy, snapshot)
  const byName = new Map<string, { port: number; uses: ServerInUse[] }>()
  for (const { plainHttp, others } of ports) {
    const [first] = plainHttp
    if (first) {
      const name = `http.${first.server.port.number}`
      byName.set(name, { port: first.server.port.number, uses: [...(byName.get(name)?.uses ?? []), ...plainHttp] })
    }
    for (const use of others)
      if (use.protocol === 'HTTPS' && terminates(use)) byName.set(secureRouteName(use), { port: use.server.port.number, uses: [use] })
  }
  return [...byName.entries()].map(([name, { port, uses }]) => ({
    name,
    objects: () => objectsOf(uses, proxy, snapshot),
    make: () => gatewayRoute(name, port, uses, proxy, view, snapshot, failed),
  }))
}

/** Where the routes of a host come from. */
type Host = {
  sources: { service: ResolvedVirtualService; gateway: string; redirect: boolean }[]
  /** Whether it is redirected to HTTPS where no VirtualService has routes for it. */
  redirect: boolean
}

function gatewayRoute(
  name: string,
  port: number,
  uses: readonly ServerInUse[],
  proxy: ProxyClass,
  view: View,
  snapshot: MeshSnapshot,
  failed: (problem: HostProblem) => VirtualHost | undefined,
): RouteConfiguration {
  const hosts = new Map<string, Host>()
  for (const use of uses) {
    const redirect = use.server.tls?.httpsRedirect === true
    const gateway = `${use.gateway.namespace}/${use.gateway.name}`
    for (const service of boundServices(use, proxy, snapshot)) {
      for (const host of narrowHosts(use, service)) {
        const there = hosts.get(host)
        if (there) there.sources.push({ service, gateway, redirect })
        else hosts.set(host, { sources: [{ service, gateway, redirect }], redirect: false })
      }
    }
    if (redirect) for (const { host } of use.hosts) hosts.set(host, { sources: hosts.get(host)?.sources ?? [], redirect })
  }
  const context = routeContext(view, snapshot, port, proxy.sourceLabels, proxy.namespace)
  const made = new Map<string, RouteInit[]>()
  const routesFrom = ({ service, gateway }: Host['sources'][number]): RouteInit[] => {
    const key = `${service.namespace}/${service.name}|${gateway}`
    let routes = made.get(key)
    if (!routes) made.set(key, (routes = routesOf(service, { ...context, gateways: new Set([gateway]) })))
    return routes
  }
  const virtualHosts = [...hosts.entries()]
    .sort(([one], [other]) => compare(one, other))
    .flatMap(([host, { sources, redirect }]): VirtualHost[] =>
      contain(
        () => {
          const parts = sources.map((from) => ({ redirect: from.redirect, routes: routesFrom(from) })).filter(({ routes }) => routes.length > 0)
          const redirected = parts[0]?.redirect ?? redirect
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
    maxDirectResponseBodySizeBytes: largestDirectResponse,
  })
}

/** The hosts a server and a VirtualService have in common, the narrower name of each pair. */
function narrowHosts(use: ServerInUse, service: ResolvedVirtualService): string[] {
  const common = new Set<string>()
  for (const host of service.hosts) {
    for (const own of use.hosts) {
      if (own.namespace !== '*' && own.namespace !== service.namespace) continue
      if (hostCovers(own.host, host)) common.add(host)
      else if (hostCovers(host, own.host)) common.add(own.host)
    }
  }
  return [...common]
}

function virtualHost(host: string, port: number, routes: RouteInit[], redirect: boolean): VirtualHost {
  const isAny = (route: RouteInit) =>
    route.match?.pathSpecifier?.case === 'prefix' &&
    route.match.pathSpecifier.value === '/' &&
    !route.match.headers?.length &&
    !route.match.queryParameters?.length
  const ordered = [...routes.filter((route) => !isAny(route)), ...routes.filter(isAny)]
  return create(VirtualHostSchema, {
    name: `${host}:${port}`,
    domains: host === '*' ? ['*'] : host.startsWith('*') ? [host, `${host}:${port}`] : [host, `${host}:*`],
    routes: ordered as MessageInitShape<typeof VirtualHostSchema>['routes'],
    includeRequestAttemptCount: true,
    requireTls: redirect ? VirtualHost_TlsRequirementType.ALL : VirtualHost_TlsRequirementType.NONE,
  })
}
